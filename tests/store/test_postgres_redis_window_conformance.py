"""What concerns claims holds with a window on ready jobs, wide or narrow, and without its Redis."""

from collections.abc import AsyncIterator

import pytest

from penstock.store.contract import Store
from penstock.store.postgres_redis.store import PostgresRedisStore
from penstock.store.postgres_redis.window import Pace
from penstock.testing.clock import FakeClock
from penstock.testing.conformance import (
    TestClaim,
    TestDue,
    TestEdges,
    TestEnqueue,
    TestFence,
    TestFilters,
    TestOrder,
    TestPauses,
    TestPrefetch,
    TestRequeue,
    TestRescue,
    TestSettlingInBatches,
    TestStage,
    TestTenants,
)
from penstock.testing.proxy import Proxy

__all__ = [
    "TestClaim",
    "TestDue",
    "TestEdges",
    "TestEnqueue",
    "TestFence",
    "TestFilters",
    "TestOrder",
    "TestPauses",
    "TestPrefetch",
    "TestRequeue",
    "TestRescue",
    "TestSettlingInBatches",
    "TestStage",
    "TestTenants",
]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


WIDE = Pace(jobs=2000, spacing_ms=0, busy=True)
NARROW = Pace(jobs=3, spacing_ms=0, busy=True)


@pytest.fixture(params=["wide", "narrow", "away"])
async def store(
    request: pytest.FixtureRequest, postgres_store_url: str, valkey_url: str, clock: FakeClock
) -> AsyncIterator[Store]:
    with Proxy(valkey_url) as proxy:
        pace = NARROW if request.param == "narrow" else WIDE
        store = PostgresRedisStore(postgres_store_url, proxy.url_for(valkey_url), clock, pace)
        await store.open()
        if request.param == "away":
            proxy.blackhole()
        yield store
        await store.close()
