"""PostgreSQL with Redis beside it keeps what of the contract is not PostgreSQL's alone."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from penstock.store.contract import Store
from penstock.store.postgres_redis.store import PostgresRedisStore
from penstock.testing.clock import FakeClock
from penstock.testing.conformance import TestDurability, TestLife, TestSubscription, TestWatch

__all__ = ["TestDurability", "TestLife", "TestSubscription", "TestWatch"]

Reopen = Callable[[], Awaitable[Store]]
Make = Callable[[], Store]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make(postgres_store_url: str, valkey_url: str, clock: FakeClock) -> Make:
    return lambda: PostgresRedisStore(postgres_store_url, valkey_url, clock)


@pytest.fixture
async def store(make: Make) -> AsyncIterator[Store]:
    store = make()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def reopen(make: Make, store: Store) -> AsyncIterator[Reopen]:
    opened: list[Store] = []

    async def again() -> Store:
        await store.close()
        opened.append(make())
        await opened[-1].open()
        return opened[-1]

    yield again
    for other in opened:
        await other.close()
