"""A store on Valkey whose time the test keeps, and a look at its keys."""

from collections.abc import AsyncIterator, Iterator

import pytest

from penstock.store.redis.store import RedisStore
from penstock.testing.clock import FakeClock
from tests.support.redis_raw import RawKeys


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def raw(valkey_url: str) -> Iterator[RawKeys]:
    raw = RawKeys(valkey_url)
    yield raw
    raw.close()


@pytest.fixture
async def store(valkey_url: str, clock: FakeClock) -> AsyncIterator[RedisStore]:
    store = RedisStore(valkey_url, clock)
    await store.open()
    yield store
    await store.close()
