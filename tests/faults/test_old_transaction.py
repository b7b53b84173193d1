"""Fault 16: a transaction that stays open keeps the server from forgetting rows that are gone."""

import statistics
import time

import psycopg
import pytest

from penstock.store.contract import Store
from tests.faults.support.facts import figure
from tests.faults.support.work import claim_of, completed, new_jobs, opened

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

OWNER = "consumer:1"
BATCH = 10
SAMPLE = 60
TIMES = 5


async def test_claims_stay_fast_while_an_old_transaction_pins_what_they_left_behind(
    postgres_store_url: str,
) -> None:
    churn = figure(short=3_000, full=200_000)
    async with opened(postgres_store_url) as store:
        await turn_over(store, 1_000)
        before = await slowest_claims(store)
        with psycopg.connect(postgres_store_url) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT count(*) FROM penstock.jobs")
            await turn_over(store, churn)
            pinned = await slowest_claims(store)
    assert pinned < TIMES * before, f"{before:.1f} ms became {pinned:.1f} ms"


async def slowest_claims(store: Store) -> float:
    """The p99 of the best of a few rounds, in milliseconds; on a busy machine the median."""
    return min([await one_round(store) for _ in range(3)])


async def one_round(store: Store) -> float:
    took: list[float] = []
    await store.jobs.enqueue(new_jobs(SAMPLE * BATCH))
    for _ in range(SAMPLE):
        began = time.perf_counter()
        leases = (await store.jobs.claim(claim_of(OWNER, BATCH))).leases
        took.append((time.perf_counter() - began) * 1000)
        await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
    return statistics.quantiles(took, n=100)[figure(short=49, full=98)]


async def turn_over(store: Store, jobs: int) -> None:
    """Enqueue, claim and settle so many jobs."""
    for _ in range(0, jobs, 200):
        await store.jobs.enqueue(new_jobs(200))
        leases = (await store.jobs.claim(claim_of(OWNER, 200))).leases
        await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
