"""Metrics: the figures equal what was settled, before and after they are rolled up."""

import pytest
from msgspec.structs import replace

from penstock.model.controls import PauseScope
from penstock.model.histogram import step_of
from penstock.store.contract import Resolution, Store, Window
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    Ending,
    a_job,
    an_edge,
    buried,
    cancelled,
    claim_all,
    completed,
    dead_job,
    enqueue,
    failed,
    handed_back,
    running,
    snoozed,
)

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


async def _complete(store: Store, count: int, duration_ms: int = 5, **fields: str) -> None:
    await store.jobs.enqueue([a_job(**fields) for _ in range(count)])
    leases = await claim_all(store, types=(fields.get("type", "work"),))
    await store.jobs.settle(OWNER, [completed(lease, "1", duration_ms) for lease in leases])


async def _total(store: Store, span_ms: int = 5 * MINUTE) -> Window:
    return (await store.metrics.window(span_ms))[0]


class TestFigures:
    """Figures over the last span of time."""

    async def test_an_idle_store_shows_zeros(self, store: Store) -> None:
        [total] = await store.metrics.window(MINUTE)
        assert (total.type, total.queue, total.span_ms) == ("", "", MINUTE)
        assert (total.completed, total.failed, total.dead, total.per_minute) == (0, 0, 0, 0)
        assert (total.success_rate, total.duration_p50_ms, total.wait_p99_ms) == (None, None, None)

    async def test_every_ending_is_counted_as_what_it_was(self, store: Store) -> None:
        endings: dict[Ending, int] = {
            completed: 4,
            failed: 3,
            snoozed: 2,
            cancelled: 1,
            buried: 2,
            handed_back: 1,
        }
        await store.jobs.enqueue([a_job() for _ in range(sum(endings.values()))])
        leases = iter(await claim_all(store))
        for ending, count in endings.items():
            settlements = [ending(next(leases)) for _ in range(count)]
            assert await store.jobs.settle(OWNER, settlements) == []
        total = await _total(store)
        assert (total.completed, total.failed, total.snoozed) == (4, 3, 2)
        assert (total.cancelled, total.dead, total.lease_expiries) == (1, 2, 0)
        assert total.success_rate == pytest.approx(4 / 6)

    async def test_a_retry_or_a_wait_that_then_succeeds_is_a_success(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(6)])
        first = await claim_all(store)
        await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0) for lease in first])
        limited = await claim_all(store)
        waits = [failed(lease, retry_in_ms=0, spends_attempt=False) for lease in limited]
        await store.jobs.settle(OWNER, waits)
        await store.jobs.settle(OWNER, [completed(lease) for lease in await claim_all(store)])
        total = await _total(store)
        assert (total.completed, total.failed, total.success_rate) == (6, 12, 1.0)

    async def test_cancels_expiries_and_rescues_are_counted(
        self, store: Store, clock: FakeClock
    ) -> None:
        await running(store)
        await store.jobs.cancel([await enqueue(store)], "no")
        await enqueue(store, expires_in_ms=10)
        clock.advance(seconds=61)
        await store.upkeep.expire()
        await store.upkeep.rescue(max_rescues=1)
        total = await _total(store)
        assert (total.cancelled, total.dead, total.lease_expiries) == (1, 2, 1)

    async def test_stale_settlements_are_not_counted(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [handed_back(lease)])
        await store.jobs.settle(OWNER, [completed(lease), failed(lease)])
        total = await _total(store)
        assert (total.completed, total.failed, total.duration_p50_ms) == (0, 0, None)

    async def test_the_total_comes_first_and_then_each_type_and_queue(self, store: Store) -> None:
        await _complete(store, 2, type="a", queue="x")
        await _complete(store, 3, type="a", queue="y")
        await _complete(store, 4, type="b", queue="x")
        total, *rows = await store.metrics.window(MINUTE)
        assert (total.type, total.queue, total.completed) == ("", "", 9)
        assert {(row.type, row.queue): row.completed for row in rows} == {
            ("a", "x"): 2,
            ("a", "y"): 3,
            ("b", "x"): 4,
        }

    async def test_what_is_older_than_the_span_is_left_out(
        self, store: Store, clock: FakeClock
    ) -> None:
        await _complete(store, 3)
        clock.advance(seconds=600)
        await _complete(store, 2)
        assert (await _total(store, 5 * MINUTE)).completed == 2
        assert (await _total(store, 20 * MINUTE)).completed == 5

    async def test_the_average_and_the_longest_duration_are_told(
        self, store: Store, clock: FakeClock
    ) -> None:
        await _complete(store, 1, 10, type="a")
        await _complete(store, 1, 250, type="a")
        await _complete(store, 2, 40, type="b")
        lease = await running(store, type="b")
        await store.jobs.settle(OWNER, [replace(failed(lease), duration_ms=70)])
        clock.advance(seconds=30)
        await _complete(store, 1, 20, type="a")
        for span_ms in (5 * MINUTE, 2 * HOUR, 3 * DAY, 90 * DAY):
            total, a, b = await store.metrics.window(span_ms)
            assert (a.duration_avg_ms, a.duration_max_ms) == (93.3, 250)
            assert (b.duration_avg_ms, b.duration_max_ms) == (50.0, 70)
            assert (total.duration_avg_ms, total.duration_max_ms) == (71.7, 250)
            await store.metrics.roll_up()
        assert {name for _, _, name, _ in await store.metrics.totals()}.isdisjoint({"duration_max"})

    async def test_the_longest_is_that_of_the_span(self, store: Store, clock: FakeClock) -> None:
        await _complete(store, 1, 900)
        clock.advance(seconds=600)
        await _complete(store, 1, 30)
        assert (await _total(store)).duration_max_ms == 30
        assert (await _total(store, HOUR)).duration_max_ms == 900
        assert (await _total(store, DAY)).duration_max_ms == 900

    async def test_a_tenant_has_figures_of_its_own(self, store: Store, clock: FakeClock) -> None:
        await _complete(store, 3, 20, tenant_id="north", type="a")
        await _complete(store, 2, 80, tenant_id="north@home\n", type="a")
        await _complete(store, 1, 500, type="a")
        lease = await running(store, tenant_id="north", type="b")
        await store.jobs.settle(OWNER, [buried(lease)])
        lease = await running(store, tenant_id="north", type="b")
        await store.jobs.settle(OWNER, [failed(lease)])
        await store.jobs.cancel([await enqueue(store, tenant_id="north", type="c")], "no")
        for _ in range(2):
            for span_ms in (5 * MINUTE, 2 * HOUR, 3 * DAY):
                total, *types = await store.metrics.window(span_ms, "north")
                assert [(w.type, w.completed, w.failed, w.dead, w.cancelled) for w in types] == [
                    ("a", 3, 0, 0, 0),
                    ("b", 0, 1, 1, 0),
                    ("c", 0, 0, 0, 1),
                ]
                assert (total.completed, types[0].duration_max_ms) == (3, 20)
                assert types[0].duration_p50_ms == pytest.approx(20, rel=0.1)
                [other, _] = await store.metrics.window(span_ms, "north@home\n")
                assert (other.completed, other.duration_avg_ms) == (2, 80.0)
                assert len(await store.metrics.window(span_ms, "south")) == 1
                assert (await store.metrics.window(span_ms))[0].completed == 6
            await store.metrics.roll_up()
        [(_, step)] = await store.metrics.series(10 * SECOND, HOUR, tenant_id="north")
        assert (step["completed"], step["dead"]) == (3, 1)
        assert not any(name.startswith("gauge:") for name in step)
        assert all("@" not in name for _, _, name, _ in await store.metrics.totals())

    async def test_a_tenants_expiries_and_rescues_are_its_own(
        self, store: Store, clock: FakeClock
    ) -> None:
        await enqueue(store, tenant_id="north", expires_in_ms=5 * SECOND)
        clock.advance(seconds=6)
        await store.upkeep.expire()
        await running(store, tenant_id="north")
        await store.upkeep.rescue(owner=OWNER)
        total = (await store.metrics.window(5 * MINUTE, "north"))[0]
        assert (total.dead, total.lease_expiries) == (1, 1)

    async def test_a_tenant_has_depths_of_its_own(self, store: Store, clock: FakeClock) -> None:
        await running(store, tenant_id="north", queue="a")
        parent = await enqueue(store, tenant_id="north", queue="a")
        await enqueue(store, tenant_id="south", queue="a")
        clock.advance(seconds=5)
        await enqueue(store, tenant_id="north", queue="b", delay_ms=MINUTE)
        await enqueue(store, tenant_id="north", queue="b", after=(an_edge(parent),))
        await enqueue(store, tenant_id="", queue="c")
        held = await enqueue(store, tenant_id="north", queue="b")
        await store.controls.pause(PauseScope.JOB, held)
        a, b = await store.metrics.depths("north")
        assert (a.queue, a.in_progress, a.queued, a.oldest_queued_ms) == ("a", 1, 1, 5_000)
        assert (b.queue, b.pending, b.blocked, b.paused) == ("b", 2, 1, 1)
        [south] = await store.metrics.depths("south")
        assert (south.queue, south.queued) == ("a", 1)
        assert await store.metrics.depths("nobody") == []
        assert [depth.queue for depth in await store.metrics.depths()] == ["a", "b", "c"]

    async def test_the_rate_is_per_minute(self, store: Store) -> None:
        await _complete(store, 30)
        assert (await _total(store, 10 * MINUTE)).per_minute == pytest.approx(3.0)

    async def test_percentiles_are_within_a_tenth(self, store: Store) -> None:
        await _complete(store, 90, duration_ms=100)
        await _complete(store, 10, duration_ms=4_000)
        total = await _total(store)
        assert total.duration_p50_ms == pytest.approx(100, rel=0.1)
        assert total.duration_p95_ms == pytest.approx(4_000, rel=0.1)
        assert total.duration_p99_ms == pytest.approx(4_000, rel=0.1)
        assert total.wait_p50_ms == pytest.approx(2, rel=0.1)

    async def test_no_percentile_is_above_the_longest(self, store: Store) -> None:
        await _complete(store, 1, duration_ms=300)  # the step it is counted in stands for 312 ms
        total = await _total(store)
        found = total.duration_p50_ms, total.duration_p95_ms, total.duration_p99_ms
        assert {*found, total.duration_max_ms} == {300}


class TestDepths:
    """How much stands in each queue."""

    async def test_many_queues_are_all_told(self, store: Store, clock: FakeClock) -> None:
        queues = [f"queue-{number:03}" for number in range(230)]
        await store.jobs.enqueue([a_job(queue=queue, type=queue) for queue in queues * 2])
        clock.advance(seconds=5)
        depths = await store.metrics.depths()
        assert [depth.queue for depth in depths] == queues
        assert {(depth.queued, depth.oldest_queued_ms) for depth in depths} == {(2, 5_000)}
        assert await store.workers.waiting_types() == dict.fromkeys(queues, 2)

    async def test_an_idle_store_has_no_depths(self, store: Store) -> None:
        await _complete(store, 1)
        assert await store.metrics.depths() == []

    async def test_each_queue_is_counted_by_status(self, store: Store, clock: FakeClock) -> None:
        retrying = await running(store, queue="a")
        await store.jobs.settle(OWNER, [failed(retrying, retry_in_ms=HOUR)])
        await running(store, queue="a")
        await store.jobs.enqueue([a_job(queue="a") for _ in range(2)])
        await enqueue(store, queue="b", delay_ms=HOUR)
        clock.advance(seconds=5)
        a, b = sorted(await store.metrics.depths(), key=lambda depth: depth.queue)
        assert (a.queue, a.pending, a.queued, a.in_progress, a.failed) == ("a", 0, 2, 1, 1)
        assert (b.queue, b.pending, b.queued, b.in_progress, b.failed) == ("b", 1, 0, 0, 0)
        assert (a.oldest_queued_ms, b.oldest_queued_ms) == (5_000, None)

    async def test_the_oldest_is_the_oldest_of_any_type_and_tenant(
        self, store: Store, clock: FakeClock
    ) -> None:
        for tenant in "bac":
            await enqueue(store, tenant_id=tenant, type=tenant)
            clock.advance(seconds=10)
        [depth] = await store.metrics.depths()
        assert depth.oldest_queued_ms == 30_000

    async def test_the_oldest_may_be_the_least_urgent(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store, priority=10)
        clock.advance(seconds=3_600)
        await enqueue(store, priority=1)
        [depth] = await store.metrics.depths()
        assert depth.oldest_queued_ms == HOUR

    async def test_open_dead_letters_are_counted(self, store: Store) -> None:
        ids = [await dead_job(store) for _ in range(4)]
        assert await store.metrics.dead_count() == 4
        await store.dead.resolve(ids[:1], Resolution.RESOLVED, notes=None, by=None)
        await store.dead.resolve(ids[1:2], Resolution.IGNORED, notes=None, by=None)
        await store.dead.resolve(ids[2:3], Resolution.INVESTIGATING, notes=None, by=None)
        assert await store.metrics.dead_count() == 2
        await store.jobs.requeue(ids[2:3])
        await store.dead.purge(ids[3:])
        assert await store.metrics.dead_count() == 0
        await store.dead.resolve(ids[:1], Resolution.PENDING, notes=None, by=None)
        assert await store.metrics.dead_count() == 1

    async def test_open_dead_letters_of_a_type_are_counted(self, store: Store) -> None:
        ids = [await dead_job(store, type="mail") for _ in range(2)]
        await dead_job(store)
        await store.dead.resolve(ids[:1], Resolution.INVESTIGATING, notes=None, by=None)
        assert await store.metrics.dead_count("mail") == 2
        await store.dead.resolve(ids[:1], Resolution.RESOLVED, notes=None, by=None)
        assert await store.metrics.dead_count("mail") == 1
        assert await store.metrics.dead_count("nothing") == 0


class TestRollUp:
    """Fine steps are folded into coarse ones; no total changes."""

    async def test_a_series_has_the_counters_of_each_step_oldest_first(
        self, store: Store, clock: FakeClock
    ) -> None:
        for count in (1, 2, 3):
            await _complete(store, count)
            clock.advance(seconds=10)
        steps = await store.metrics.series(10 * SECOND, MINUTE)
        assert [counters["completed"] for _, counters in steps] == [1, 2, 3]
        assert [at for at, _ in steps] == sorted(at for at, _ in steps)

    async def test_a_series_has_the_timings_of_each_step_if_asked(
        self, store: Store, clock: FakeClock
    ) -> None:
        for duration_ms in (200, 4_000):
            await _complete(store, 2, duration_ms=duration_ms)
            clock.advance(seconds=10)
        steps = await store.metrics.series(10 * SECOND, MINUTE, timings=True)
        took = [
            {name: n for name, n in counters.items() if name.startswith("duration:")}
            for _, counters in steps
        ]
        assert took == [{f"duration:{step_of(200)}": 2}, {f"duration:{step_of(4_000)}": 2}]
        assert not any(
            name.startswith("duration:")
            for _, counters in await store.metrics.series(10 * SECOND, MINUTE)
            for name in counters
        )

    @pytest.mark.parametrize(
        ("resolution", "span"), [(MINUTE, 2 * HOUR), (HOUR, 3 * DAY), (DAY, 90 * DAY)]
    )
    async def test_coarse_steps_hold_the_same_total(
        self, store: Store, clock: FakeClock, resolution: int, span: int
    ) -> None:
        for _ in range(8):
            await _complete(store, 3)
            await store.metrics.roll_up()
            clock.advance(seconds=25)
        for _ in range(3):
            await store.metrics.roll_up()
            clock.advance(seconds=10)
        steps = await store.metrics.series(resolution, span)
        assert sum(counters["completed"] for _, counters in steps) == 24
        assert (await _total(store, span)).completed == 24

    async def test_rolling_up_changes_no_figure(self, store: Store, clock: FakeClock) -> None:
        await _complete(store, 5)
        await store.jobs.settle(OWNER, [failed(await running(store))])
        clock.advance(seconds=30)
        before = await store.metrics.window(10 * MINUTE)
        for _ in range(3):
            await store.metrics.roll_up()
        assert await store.metrics.window(10 * MINUTE) == before

    async def test_a_leader_that_was_away_loses_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        for _ in range(6):
            await _complete(store, 2)
            clock.advance(seconds=1_800)
        await store.metrics.roll_up()
        assert (await _total(store, 12 * HOUR)).completed == 12
        assert (await _total(store, 10 * DAY)).completed == 12

    async def test_totals_survive_the_fine_steps(self, store: Store, clock: FakeClock) -> None:
        await _complete(store, 4, duration_ms=200)
        for _ in range(4):
            await store.metrics.roll_up()
            clock.advance(seconds=3_600)
        await store.metrics.roll_up()
        assert await store.metrics.series(10 * SECOND, DAY) == []
        total = await _total(store, DAY)
        assert (total.completed, total.success_rate) == (4, 1.0)
        assert total.duration_p50_ms == pytest.approx(200, rel=0.1)
