"""Counters since the beginning on Redis: added once for each step, whatever the clock does."""

from penstock.store.contract import Store
from penstock.store.contract.metrics import DAY_MS, STEPS_KEPT_MS
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, a_job, claim_all, completed
from proof.conformance.furnish import copy
from tests.support.namespaces import in_new_namespace


async def _complete(store: Store, count: int) -> None:
    await store.jobs.enqueue([a_job() for _ in range(count)])
    leases = await claim_all(store)
    assert await store.jobs.settle(OWNER, [completed(lease) for lease in leases]) == []


async def _completed(store: Store) -> float:
    totals = {name: value for _, _, name, value in await store.metrics.totals()}
    assert totals.get("attempts:1", 0) == totals.get("started", 0) == totals["completed"]
    assert totals["duration_sum"] == 5 * totals["completed"]
    return totals["completed"]


async def test_a_clock_that_is_set_back_counts_nothing_twice_and_loses_nothing(
    store: Store, clock: FakeClock
) -> None:
    for seconds in (20, -20, 5, -60, 60, 0):
        await _complete(store, 1)
        clock.set_wall(clock.now() + 1_000 * seconds)
    assert await _completed(store) == 6
    await _complete(store, 1)
    assert await _completed(store) == 7


async def test_a_step_that_is_dropped_while_nothing_happens_stays_counted(
    store: Store, clock: FakeClock
) -> None:
    await _complete(store, 3)
    clock.advance(seconds=2 * 3_600)
    await store.metrics.roll_up()
    assert await _completed(store) == 3
    await _complete(store, 2)
    assert await _completed(store) == 5


async def test_days_that_are_dropped_move_on_as_one_sum(store: Store, clock: FakeClock) -> None:
    await _complete(store, 3)
    await store.metrics.roll_up()
    clock.advance(seconds=(STEPS_KEPT_MS[DAY_MS] + 2 * DAY_MS) / 1000)
    await _complete(store, 2)
    await store.metrics.roll_up()
    assert len(await store.metrics.series(DAY_MS, 2_000 * DAY_MS)) == 1
    other = open_store(in_new_namespace(store.url), clock)
    await other.open()
    try:
        await copy(store, other)
        assert await _completed(other) == await _completed(store) == 5
        assert await other.transfer.tally() == await store.transfer.tally()
        await _complete(other, 1)
        assert await _completed(other) == 6
    finally:
        await other.close()
