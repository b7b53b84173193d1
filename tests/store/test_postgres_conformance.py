"""The PostgreSQL store keeps the contract."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from penstock.testing.conformance import *  # noqa: F403

del TestReboot  # noqa: F821 - the server's clock times the leases, whatever host restarts

Reopen = Callable[[], Awaitable[Store]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(postgres_store_url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(postgres_store_url, clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def reopen(postgres_store_url: str, store: Store, clock: FakeClock) -> AsyncIterator[Reopen]:
    opened: list[Store] = []

    async def again() -> Store:
        await store.close()
        opened.append(open_store(postgres_store_url, clock))
        await opened[-1].open()
        return opened[-1]

    yield again
    for other in opened:
        await other.close()
