"""Totals: counters since the beginning, which only grow."""

from collections.abc import Awaitable, Callable

from penstock.model.histogram import step_of
from penstock.model.states import TERMINAL
from penstock.store.contract import JobFilter, Retention, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    a_job,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    enqueue,
    enqueue_after,
    failed,
    handed_back,
    running,
    snoozed,
)

Reopen = Callable[[], Awaitable[Store]]
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
YEARS_MS = 1_100 * DAY


async def _totals(store: Store, type_: str = "work", queue: str = "default") -> dict[str, float]:
    found = await store.metrics.totals()
    assert len({row[:3] for row in found}) == len(found)
    return {name: value for kind, lane, name, value in found if (kind, lane) == (type_, queue)}


async def _complete(store: Store, count: int, duration_ms: int = 5, **fields: str) -> None:
    await store.jobs.enqueue([a_job(**fields) for _ in range(count)])
    leases = await claim_all(store, types=(fields.get("type", "work"),))
    await store.jobs.settle(OWNER, [completed(lease, "1", duration_ms) for lease in leases])


class TestTotals:
    """What is counted, and that it stays counted."""

    async def test_a_new_store_has_counted_nothing(self, store: Store) -> None:
        assert await store.metrics.totals() == []

    async def test_each_type_and_queue_is_counted_for_itself(self, store: Store) -> None:
        await _complete(store, 2, type="a", queue="x")
        await _complete(store, 3, type="a", queue="y")
        assert (await _totals(store, "a", "x"))["completed"] == 2
        assert (await _totals(store, "a", "y"))["completed"] == 3

    async def test_completed_executions_are_counted_with_their_times(self, store: Store) -> None:
        await _complete(store, 3, duration_ms=200)
        await _complete(store, 1, duration_ms=4_000)
        assert await _totals(store) == {
            "completed": 4,
            "started": 4,
            "attempts:1": 4,
            f"duration:{step_of(200)}": 3,
            f"duration:{step_of(4_000)}": 1,
            "duration_sum": 4_600,
            f"wait:{step_of(2)}": 4,
            "wait_sum": 8,
        }

    async def test_every_execution_that_began_counts_as_started(self, store: Store) -> None:
        endings = (failed, snoozed, crashed, handed_back, cancelled, buried, completed)
        for ending in endings:
            lease = await running(store, type=ending.__name__)
            assert await store.jobs.settle(OWNER, [ending(lease)]) == []
            assert (await _totals(store, ending.__name__))["started"] == 1

    async def test_a_lease_under_which_nothing_ran_is_no_start(
        self, store: Store, clock: FakeClock
    ) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        await store.jobs.settle(OWNER, [handed_back(lease, started=False)])
        await claim_one(store, start=0)
        clock.advance(seconds=61)
        await store.upkeep.rescue()
        assert "started" not in await _totals(store)

    async def test_a_lost_execution_counts_as_started(self, store: Store, clock: FakeClock) -> None:
        await running(store)
        clock.advance(seconds=61)
        await store.upkeep.rescue(max_rescues=1)
        assert await _totals(store) == {
            "lease_expiries": 1,
            "started": 1,
            "dead": 1,
            "attempts:0": 1,
        }

    async def test_attempts_are_counted_when_the_job_ends(self, store: Store) -> None:
        await enqueue(store, max_retries=20)
        for _ in range(11):
            await store.jobs.settle(OWNER, [failed(await claim_one(store), retry_in_ms=0)])
        assert not [name for name in await _totals(store) if name.startswith("attempts")]
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert (await _totals(store))["attempts:more"] == 1
        for ending, name in ((buried, "attempts:2"), (cancelled, "attempts:1")):
            await enqueue(store, type=name)
            lease = await claim_one(store, types=(name,))
            await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
            await store.jobs.settle(OWNER, [ending(await claim_one(store, types=(name,)))])
            assert (await _totals(store, name))[name] == 1

    async def test_ends_without_an_execution_are_counted_too(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = await enqueue(store, type="parent")
        await enqueue_after(store, parent, type="child")
        await store.jobs.cancel([parent], "no")
        await enqueue(store, type="late", expires_in_ms=10)
        clock.advance(seconds=1)
        await store.upkeep.expire()
        assert await _totals(store, "parent") == {"cancelled": 1, "attempts:0": 1}
        assert await _totals(store, "child") == {"cancelled": 1, "attempts:0": 1}
        assert await _totals(store, "late") == {"dead": 1, "attempts:0": 1}

    async def test_stale_settlements_are_not_counted(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        before = await store.metrics.totals()
        await store.jobs.settle(OWNER, [completed(lease), failed(lease)])
        assert await store.metrics.totals() == before

    async def test_a_series_and_a_window_show_none_of_it(self, store: Store) -> None:
        await _complete(store, 2)
        [(_, counters)] = await store.metrics.series(10_000, MINUTE)
        assert counters == {"completed": 2}
        await store.metrics.roll_up()
        [(_, counters)] = await store.metrics.series(MINUTE, HOUR)
        assert {name for name in counters if not name.startswith("gauge:")} == {"completed"}

    async def test_gauges_are_no_counters(self, store: Store) -> None:
        await enqueue(store)
        await store.metrics.roll_up()
        assert await store.metrics.totals() == []


class TestTotalsGrow:
    """They are the same however often, and however long ago, they were rolled up."""

    async def test_they_grow_by_what_happens_whenever_it_is_rolled_up(
        self, store: Store, clock: FakeClock
    ) -> None:
        expected = 0
        for number, seconds in enumerate((1, 9, 10, 50, 61, 1_800, 3_599, 7_200, 86_400, 200_000)):
            await _complete(store, number + 1)
            expected += number + 1
            assert (await _totals(store))["completed"] == expected
            if number % 3:
                await store.metrics.roll_up()
                assert (await _totals(store))["completed"] == expected
            clock.advance(seconds=seconds)
            assert (await _totals(store))["completed"] == expected

    async def test_days_that_are_too_old_stay_counted(self, store: Store, clock: FakeClock) -> None:
        await _complete(store, 3, duration_ms=200)
        before = await _totals(store)
        for _ in range(3):
            await store.metrics.roll_up()
            clock.advance(seconds=YEARS_MS / 2_000)
        for _ in range(2):
            await store.metrics.roll_up()
            assert await _totals(store) == before
        await _complete(store, 4)
        assert (await _totals(store))["completed"] == 7
        assert [step for step, _ in await store.metrics.series(DAY, 100 * YEARS_MS)] != [0]
        assert (await store.metrics.window(100 * YEARS_MS))[0].completed == 4

    async def test_pruning_takes_nothing_away(self, store: Store, clock: FakeClock) -> None:
        await _complete(store, 3)
        before = await store.metrics.totals()
        clock.advance(seconds=100)
        await store.upkeep.prune(Retention(keep_ms=dict.fromkeys(TERMINAL, 1)))
        assert await store.reader.find(JobFilter()) == []
        assert await store.metrics.totals() == before

    async def test_a_process_that_opens_later_reads_the_same(
        self, store: Store, clock: FakeClock, reopen: Reopen
    ) -> None:
        for _ in range(4):
            await _complete(store, 2)
            await store.metrics.roll_up()
            clock.advance(seconds=50_000)
        before = await store.metrics.totals()
        again = await reopen()
        assert await again.metrics.totals() == before
