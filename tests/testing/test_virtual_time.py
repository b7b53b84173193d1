import contextlib
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from penstock import Context, Penstock, Settings, Snooze, Status
from penstock.model.controls import Limit, LimitKind, LimitScope
from penstock.model.errors import InvalidOption
from penstock.model.ids import id_time_ms, is_id, new_id
from penstock.store.contract import Claim
from penstock.testing import FakeClock, VirtualTime, drain, in_memory, virtual_time

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def app() -> Penstock:
    return Penstock("sqlite:///never-made.db", settings=Settings())


@pytest.fixture
def time(app: Penstock) -> Iterator[VirtualTime]:
    with virtual_time(app, START) as virtual:
        yield virtual


def seconds(moments: list[datetime]) -> list[float]:
    return [(moment - START).total_seconds() for moment in moments]


async def test_a_year_of_a_nightly_schedule_has_a_job_every_night(
    app: Penstock, time: VirtualTime
) -> None:
    nights: list[datetime] = []

    @app.job
    async def report(ctx: Context) -> None:
        nights.append(ctx.now)

    await app.schedule("nightly", report, cron="30 1 * * *")
    await time.advance(days=365)
    assert nights == [START + timedelta(days=day, hours=1, minutes=30) for day in range(365)]
    assert time.now == START + timedelta(days=365)
    assert time.times("fired", report) == time.times("completed", report) == nights


async def test_the_night_that_skips_an_hour_and_the_one_that_has_it_twice(app: Penstock) -> None:
    @app.job
    async def report() -> None: ...

    with virtual_time(app, "2026-03-28T12:00:00Z") as time:
        await app.schedule("nightly", report, cron="30 2 * * *", zone="Europe/Berlin")
        await time.until("2026-03-31T00:00:00+02:00")
        spring = [moment.isoformat() for moment in time.times("completed", report)]
        await time.until("2026-10-24T12:00:00Z")
        before = len(time.times("completed", report))
        await time.until("2026-10-26T12:00:00Z")
        autumn = [moment.isoformat() for moment in time.times("completed", report)[before:]]
    assert spring == ["2026-03-29T01:00:00+00:00", "2026-03-30T00:30:00+00:00"]
    assert autumn == ["2026-10-25T00:30:00+00:00", "2026-10-26T01:30:00+00:00"]


async def test_a_declared_schedule_fires_too(app: Penstock, time: VirtualTime) -> None:
    @app.scheduled(every=3600)
    @app.job
    async def hourly() -> None: ...

    await time.advance()
    await time.advance(hours=24)
    assert len(time.times("completed", hourly)) == 24


async def test_retries_climb_their_ladder_at_exact_moments(
    app: Penstock, time: VirtualTime
) -> None:
    @app.job(max_retries=3, retry_delay=10, backoff=2)
    async def broken() -> None:
        raise ConnectionError

    job = await broken.enqueue()
    await time.advance(hours=1)
    failed, (dead,) = time.times("failed", broken), time.times("dead", broken)
    executions = await app.executions(job.id)
    at = [execution.started_at for execution in executions]
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert seconds(failed)[0] == 0
    for gap, base in zip(gaps, (10, 20, 40), strict=True):
        assert base * 1000 <= gap <= base * 1200
    assert len(failed) == 3
    assert int(dead.timestamp() * 1000) == at[-1]
    assert (await job.get()).status is Status.DEAD_LETTER


async def test_delays_and_snoozes_end_at_their_own_moments(
    app: Penstock, time: VirtualTime
) -> None:
    ran: list[tuple[int, float]] = []

    @app.job
    async def task(ctx: Context, number: int) -> Any:
        ran.append((number, seconds([ctx.now])[0]))
        return Snooze(5.5) if number == 2 and len(ran) == 2 else None

    await task.options(delay=60).enqueue(3)
    await task.options(delay=30).enqueue(2)
    await task.options(delay=0.25).enqueue(1)
    await time.advance(minutes=1)
    assert ran == [(1, 0.25), (2, 30.0), (2, 35.5), (3, 60.0)]


async def test_a_rate_lets_exactly_its_number_through_in_every_window(
    app: Penstock, time: VirtualTime
) -> None:
    @app.job(rate="10/min")
    async def call(number: int) -> None: ...

    await app.enqueue_many([call.new(number) for number in range(1_000)])
    await time.advance(hours=1)
    done = seconds(time.times("completed", call))
    per_minute = Counter(int(at // 60) for at in done)
    assert per_minute == dict.fromkeys(range(60), 10) | {60: 10}
    for at in done:
        assert sum(1 for other in done if at <= other < at + 60) <= 10


async def test_a_breaker_lets_one_job_try_when_it_has_cooled_down(
    app: Penstock, time: VirtualTime
) -> None:
    bank = {"down": True}

    app.breaker("bank", failures=2, cool_down=30)

    @app.job(max_retries=0, breaker="bank")
    async def charge(number: int) -> None:
        if bank["down"]:
            raise ConnectionError

    await app.enqueue_many([charge.new(number) for number in range(6)])
    await time.advance(seconds=50)
    assert seconds(time.times("dead", charge)) == [0, 0, 30]
    bank["down"] = False
    await time.advance(seconds=50)
    assert seconds(time.times("completed", charge)) == [60, 60, 60]


async def test_a_lease_of_a_worker_that_died_is_rescued_when_it_has_run_out(
    app: Penstock, time: VirtualTime
) -> None:
    @app.job
    async def task() -> str:
        return "ran"

    job = await task.enqueue()
    claim = Claim(owner="gone:1", types=("task",), limit=1, start=1, lease_ms=45_000)
    assert len((await app.store.jobs.claim(claim)).leases) == 1
    await time.advance(seconds=45)
    assert time.times("rescued", task) == []
    await time.advance(seconds=45)
    assert seconds(time.times("rescued", task)) == [45.001]
    assert seconds(time.times("completed", task)) == [45.001]
    assert (await job.get()).rescues == 1


async def test_a_handler_may_die_with_its_worker_and_go_on_from_its_checkpoint(
    app: Penstock, time: VirtualTime
) -> None:
    charged: list[int] = []

    @app.job(lease=20)
    async def charge(ctx: Context) -> Any:
        ctx.log("at work")
        if ctx.checkpoint is None:
            charged.append(1)
        if len(ctx.checkpoint or []) < 2:
            await ctx.save_checkpoint([*(ctx.checkpoint or []), ctx.fence])
            time.crash()
        return ctx.checkpoint

    job = await charge.enqueue()
    happened = await time.advance(minutes=1)
    assert [(one.what, seconds([one.at])[0]) for one in happened] == [
        ("rescued", 20.001),
        ("rescued", 40.002),
        ("completed", 40.002),
    ]
    assert (len(charged), await job.result()) == (1, [1, 3])
    assert [line.message for line in await app.logs(job.id)] == ["at work"] * 3
    assert len({execution.worker for execution in await app.executions(job.id)}) == 3


async def test_a_worker_that_dies_before_it_settles_runs_the_job_twice(
    app: Penstock, time: VirtualTime
) -> None:
    effects: list[int] = []

    @app.job
    def charge() -> None:
        effects.append(threading.get_ident())

    time.crash_after(charge)
    await charge.enqueue()
    await time.advance(hours=1)
    assert len(effects) == 2
    assert [one.what for one in time.history] == ["enqueued", "rescued", "completed"]


async def test_a_handler_that_catches_everything_dies_all_the_same(
    app: Penstock, time: VirtualTime
) -> None:
    @app.job
    async def stubborn(ctx: Context) -> None:
        if ctx.fence == 1:
            with contextlib.suppress(BaseException):
                time.crash()

    await stubborn.enqueue()
    await time.advance(minutes=2)
    assert [one.what for one in time.history] == ["enqueued", "rescued", "completed"]


async def test_poison_is_buried_after_three_deaths(app: Penstock, time: VirtualTime) -> None:
    @app.job
    async def poison() -> None:
        time.crash()

    job = await poison.enqueue()
    await time.advance(hours=1)
    assert [one.what for one in time.history] == ["enqueued", "rescued", "rescued", "dead"]
    assert seconds(time.times("dead", poison)) == [180.003]
    assert (await job.get()).status is Status.DEAD_LETTER


async def test_a_job_that_expires_does_so_at_its_own_moment(
    app: Penstock, time: VirtualTime
) -> None:
    @app.job
    async def task() -> None: ...

    await task.options(delay=3600, expires_in=90.5).enqueue()
    await time.advance(hours=2)
    assert [(one.what, seconds([one.at])[0]) for one in time.history[1:]] == [("expired", 90.5)]


async def test_a_handler_that_takes_long_is_stopped_at_its_timeout(
    app: Penstock, time: VirtualTime
) -> None:
    @app.job(timeout=30, max_retries=0)
    async def slow(minutes: float) -> str:
        await time.spend(minutes=minutes)
        return "done"

    quick, never = await app.enqueue_many([slow.new(0.25), slow.new(10)])
    await time.advance()
    assert await quick.result() == "done"
    assert seconds(time.times("completed", slow)) == [15]
    assert seconds(time.times("dead", slow)) == [45]
    assert "30 s" in str((await never.get()).error)


async def test_what_is_past_its_retention_is_gone_unless_the_test_keeps_it(app: Penstock) -> None:
    @app.job
    async def task() -> None: ...

    with virtual_time(app) as time:
        job = await task.enqueue()
        await time.advance(days=6)
        assert (await job.get()).status is Status.COMPLETED
        await time.advance(days=2)
        assert await app.find() == []
    with virtual_time(app, prune=False) as time:
        await task.enqueue()
        await time.advance(days=30)
        assert len(await app.find()) == 1


async def story(app: Penstock, seed: int) -> list[Any]:
    random.seed()
    with virtual_time(app, START, seed=seed) as time:
        chance: list[float] = []

        @app.job(name="flaky", max_retries=5)
        async def flaky(number: int) -> None:
            chance.append(random.random())
            if chance[-1] < 0.5:
                raise ConnectionError

        await app.schedule("often", flaky.new(0), every=600)
        await app.enqueue_many([flaky.new(number) for number in range(20)])
        await time.advance(hours=3)
        return [*map(str, time.history), chance]


async def test_the_same_seed_gives_the_same_history_ids_and_chance() -> None:
    def app() -> Penstock:
        return Penstock("sqlite:///never-made.db", settings=Settings())

    first, second, other = await story(app(), 7), await story(app(), 7), await story(app(), 8)
    assert len(first) > 60
    assert first == second
    assert first != other


async def test_chance_and_ids_outside_are_left_as_they_were(app: Penstock) -> None:
    before = new_id()
    random.seed(5)
    expected = [random.random() for _ in range(3)]
    random.seed(5)
    with virtual_time(app, "2020-01-01T00:00:00Z"):
        inside = new_id()
        random.random()
    assert [random.random() for _ in range(3)] == expected
    assert id_time_ms(inside) == 1_577_836_800_000
    assert is_id(inside)
    assert inside < before < new_id()


async def test_two_stretches_on_one_store_make_different_ids(app: Penstock) -> None:
    @app.job
    async def task() -> None: ...

    with in_memory(app):
        handles = []
        for _ in range(2):
            with virtual_time(app) as time:
                handles.append(await task.enqueue())
                await time.advance()
        assert [handle.created for handle in handles] == [True, True]
        assert len(await app.find()) == 2


async def test_it_takes_the_store_that_a_test_already_has(app: Penstock) -> None:
    clock = FakeClock("2026-05-01T00:00:00Z")
    with in_memory(app, clock):
        store = app.store
        with virtual_time(app) as time:
            assert time.clock is clock
            assert time.now == datetime(2026, 5, 1, tzinfo=UTC)
        assert app.store is store


def test_it_works_without_an_event_loop(app: Penstock) -> None:
    @app.job(timeout=10, max_retries=0)
    def task(span: float) -> str:
        time.spend(seconds=span)
        return "done"

    with virtual_time(app.sync, START) as time:
        short = app.sync.enqueue(task.options(delay=60).new(4))
        long = app.sync.enqueue(task.options(delay=60).new(40))
        assert time.advance(seconds=59) == []
        time.until(START + timedelta(minutes=2))
        assert app.sync.result(short) == "done"
        assert app.sync.get(long.id).status is Status.DEAD_LETTER
        assert seconds(time.times("dead", task)) == [74]
        assert time.now == START + timedelta(minutes=2)


async def test_a_handler_for_a_process_runs_here(app: Penstock, time: VirtualTime) -> None:
    pids: list[int] = []

    @app.job(run_in="process")
    def task() -> None:
        pids.append(os.getpid())

    await task.enqueue()
    await time.advance()
    assert pids == [os.getpid()]


async def test_time_passes_in_one_direction(time: VirtualTime) -> None:
    with pytest.raises(InvalidOption, match="one direction"):
        await time.advance(seconds=-1)
    with pytest.raises(InvalidOption, match="no earlier than"):
        await time.until("2025-01-01T00:00:00Z")
    with pytest.raises(InvalidOption, match="with a zone"):
        await time.until(datetime(2027, 1, 1))  # noqa: DTZ001 - that is the mistake
    with pytest.raises(RuntimeError, match="for handlers"):
        time.crash()
    with pytest.raises(RuntimeError, match="for handlers"):
        await time.spend(seconds=1)


async def test_a_handler_cannot_move_the_time_it_runs_in(app: Penstock, time: VirtualTime) -> None:
    @app.job(max_retries=0)
    async def meddler() -> None:
        await time.advance(days=1)

    job = await meddler.enqueue()
    await time.advance()
    assert "spend()" in str((await job.get()).error)
    assert time.now == START


async def test_a_job_that_enqueues_itself_without_end_is_named(
    app: Penstock, time: VirtualTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.testing.lone_worker.MOST_AT_ONCE", 50)

    @app.job
    async def again(ctx: Context) -> None:
        await ctx.enqueue(again.new())

    await again.enqueue()
    with pytest.raises(AssertionError, match="without a delay"):
        await time.advance()


async def test_drain_covers_schedules_rates_and_lapsed_leases(app: Penstock) -> None:
    clock = FakeClock()
    with in_memory(app, clock):

        @app.job
        async def tick() -> None: ...

        @app.job
        async def call(number: int) -> None: ...

        rate = Limit(
            scope=LimitScope.TYPE, name="call", kind=LimitKind.RATE, capacity=2, interval_ms=1_000
        )
        await app.store.controls.set_limits([rate])
        await app.schedule("ticks", tick, every=60)
        await app.enqueue_many([call.new(number) for number in range(6)])
        claim = Claim(owner="gone:1", types=("call",), limit=1, start=1, lease_ms=90_000)
        assert len((await app.store.jobs.claim(claim)).leases) == 1
        assert await drain(app) == (1, 0)
        assert await drain(app, through=120) == (5 + 2, 0)
        assert clock.monotonic() == 120_000


async def test_released_dead_letters_run_again_at_their_rate(
    app: Penstock, time: VirtualTime
) -> None:
    cured = False

    @app.job(max_retries=0)
    async def send(number: int) -> None:
        if not cured:
            raise RuntimeError("down")

    await app.enqueue_many([send.new(number) for number in range(3)])
    await time.advance()
    cured = True
    (group,) = await app.dead.groups()
    await app.dead.release(group.id, "1/min")
    await time.advance(minutes=5)
    assert seconds(time.times("completed", send)) == [0, 60, 120]
    assert len(time.times("requeued", send)) == 3
