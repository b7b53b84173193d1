import asyncio
from typing import Any

import pytest
import structlog

from penstock import Penstock, Status, Worker
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Claim
from penstock.testing import FakeClock, Signals, enqueued
from penstock.upkeep import upkeep_services
from penstock.upkeep.leader import Leader
from penstock.upkeep.prune import Prune, RollUp
from penstock.upkeep.rescue import Rescue
from penstock.upkeep.sweeps import Stage, Unclaimed


async def _leased(app: Penstock, lease: float = 60) -> str:
    """The id of a job whose worker died right after it started."""

    @app.job
    async def task() -> None: ...

    job = await task.enqueue()
    claim = Claim(owner="dead", types=["task"], limit=1, start=1, lease_ms=int(lease * 1000))
    await app.store.jobs.claim(claim)
    return job.id


async def test_a_fresh_rescuer_waits_one_renewal(app: Penstock, clock: FakeClock) -> None:
    job_id = await _leased(app)
    clock.advance(61)
    leader = Leader(app, "leader", term=100_000)
    await leader.run_once()
    rescue = Rescue(app, leader)
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.IN_PROGRESS
    clock.advance(19)
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.IN_PROGRESS
    clock.advance(1)
    await rescue.run_once()
    found = await app.get(job_id)
    assert (found.status, found.rescues) == (Status.QUEUED, 1)


async def test_the_sweep_leaves_the_store_to_the_workers_after_every_full_batch(
    app: Penstock, leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    staged = iter([1_000, 1_000, 400, 0])

    async def stage(limit: int) -> int:
        happened.append("staged")
        return next(staged)

    async def rest(seconds: float) -> None:
        happened.append("rested")

    monkeypatch.setattr(app.store.upkeep, "stage", stage)
    monkeypatch.setattr("penstock.upkeep.sweeps.sleep", rest)
    await Stage(app, leader).run_once()
    assert happened == ["staged", "rested", "staged", "rested", "staged", "staged"]


async def test_a_rescuer_that_was_cut_off_within_its_term_waits_a_full_lease(
    app: Penstock, clock: FakeClock, leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescue = Rescue(app, leader)
    await rescue.run_once()
    clock.advance(30)
    await rescue.run_once()
    job_id = await _leased(app)
    with monkeypatch.context() as outage:
        outage.setattr(app.store.upkeep, "lead", _away)
        for _ in range(2):
            clock.advance(31)
            leader._until = clock.monotonic() + 100_000  # as far as it knows, it leads
            with pytest.raises(StoreUnavailable):
                await rescue.run_once()
    await leader.run_once()
    for _ in range(2):
        await rescue.run_once()
        assert (await app.get(job_id)).status is Status.IN_PROGRESS
        clock.advance(30)
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.QUEUED


async def test_a_new_leader_that_was_cut_off_before_waits_a_full_lease(
    app: Penstock, clock: FakeClock
) -> None:
    old, new = Leader(app, "old"), Leader(app, "new")
    await old.run_once()
    await new.run_once()
    job_id = await _leased(app)
    clock.advance(70)  # nobody reached the store
    await new.run_once()
    assert new.leads
    rescue = Rescue(app, new)
    for _ in range(3):
        await rescue.run_once()
        assert (await app.get(job_id)).status is Status.IN_PROGRESS
        clock.advance(20)
        await new.run_once()
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.QUEUED


async def _away(*args: Any) -> bool:
    raise StoreUnavailable("work.db", "the server is away")


async def test_a_rescuer_that_was_stalled_waits_a_full_lease(
    app: Penstock, clock: FakeClock, leader: Leader
) -> None:
    rescue = Rescue(app, leader)
    await rescue.run_once()
    clock.advance(30)
    await rescue.run_once()
    job_id = await _leased(app)
    clock.advance(300)  # the whole host was suspended, its workers with it
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.IN_PROGRESS
    clock.advance(30)
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.IN_PROGRESS
    clock.advance(30)
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.QUEUED


async def test_a_rescuer_takes_no_lease_that_still_runs(
    app: Penstock, clock: FakeClock, leader: Leader
) -> None:
    job_id = await _leased(app, lease=600)
    rescue = Rescue(app, leader)
    for _ in range(10):
        await rescue.run_once()
        clock.advance(30)
    assert (await app.get(job_id)).status is Status.IN_PROGRESS


async def test_whoever_does_not_lead_passes(
    app: Penstock, clock: FakeClock, follower: Leader, drain: Any
) -> None:
    job_id = await _leased(app)
    waiting = await app.find_type("task").options(delay=10).enqueue()
    clock.advance(30)
    passes = [kind(app, follower) for kind in (Rescue, Stage, Prune, RollUp)]
    for _ in range(5):
        for each in passes:
            await each.run_once()
        clock.advance(25)
    assert (await app.get(job_id)).status is Status.IN_PROGRESS
    assert (await waiting.get()).status is Status.PENDING


async def test_a_standby_that_takes_over_waits_one_renewal(app: Penstock, clock: FakeClock) -> None:
    one, two = Leader(app, "one", term=15), Leader(app, "two", term=60)
    await one.run_once()
    rescue = Rescue(app, two)
    job_id = await _leased(app)
    for _ in range(4):
        await rescue.run_once()
        clock.advance(30)
    await two.run_once()
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.IN_PROGRESS
    clock.advance(20)
    await rescue.run_once()
    assert (await app.get(job_id)).status is Status.QUEUED


async def test_the_third_rescue_buries(app: Penstock, clock: FakeClock, leader: Leader) -> None:
    rescue = Rescue(app, leader)
    job_id = await _leased(app)
    claim = Claim(owner="dead", types=["task"], limit=1, start=1, lease_ms=1000)
    for _ in range(20):
        await rescue.run_once()
        clock.advance(30)
        await app.store.jobs.claim(claim)
    found = await app.get(job_id)
    assert (found.status, found.rescues) == (Status.DEAD_LETTER, 3)


async def test_staging_queues_what_is_due_and_buries_what_expired(
    app: Penstock, clock: FakeClock, leader: Leader
) -> None:
    @app.job
    async def task() -> None: ...

    await app.enqueue_many([task.options(delay=10).new() for _ in range(2500)])
    expiring = await task.options(delay=60, expires_in=5).enqueue()
    clock.advance(10)
    await Stage(app, leader).run_once()
    assert (await expiring.get()).status is Status.DEAD_LETTER
    states = [job.status for job in await enqueued(app)]
    assert states.count(Status.QUEUED) == 2500


async def test_pruning_keeps_what_the_settings_say(
    app: Penstock, clock: FakeClock, leader: Leader, drain: Any
) -> None:
    app.settings = app.settings.replace(
        keep_completed=100, keep_cancelled=200, keep_dead=300, keep_last={"kept": 2}
    )

    @app.job
    async def task(fail: bool = False) -> None:
        if fail:
            raise PermissionError

    @app.job
    async def kept() -> None: ...

    completed, dead = await task.enqueue(), await task.enqueue(fail=True)
    cancelled = await task.enqueue()
    await cancelled.cancel()
    waiting = await task.options(delay=1_000_000).enqueue()
    await app.enqueue_many([kept.new() for _ in range(5)])
    await drain()
    prune = Prune(app, leader)
    names = {completed.id: "completed", cancelled.id: "cancelled", dead.id: "dead"}
    names[waiting.id] = "waiting"

    async def left() -> set[str]:
        await prune.run_once()
        return {names.get(job.id, job.type) for job in await enqueued(app)}

    clock.advance(99)
    assert await left() == {"completed", "cancelled", "dead", "waiting", "kept"}
    clock.advance(2)
    assert await left() == {"cancelled", "dead", "waiting", "kept"}
    assert len(await enqueued(app, kept)) == 2
    clock.advance(100)
    assert await left() == {"dead", "waiting", "kept"}
    clock.advance(100)
    assert await left() == {"waiting", "kept"}
    assert await app.executions(completed.id) == []
    assert await app.store.dead.find() == []


async def test_rolling_up_keeps_the_figures(
    app: Penstock, clock: FakeClock, leader: Leader, drain: Any
) -> None:
    @app.job
    async def task() -> None: ...

    await app.enqueue_many([task.new() for _ in range(7)])
    await drain()
    roll_up = RollUp(app, leader)
    for _ in range(40):
        clock.advance(10)
        await roll_up.run_once()
    in_all = (await app.store.metrics.window(3_600_000))[0]
    assert in_all.completed == 7
    minutes = await app.store.metrics.series(60_000, 3_600_000)
    assert sum(counters.get("completed", 0) for _, counters in minutes) == 7


async def test_a_worker_runs_the_upkeep_of_its_installation(
    app: Penstock, clock: FakeClock
) -> None:
    signals = Signals()

    @app.job
    async def task() -> None:
        signals.send("ran")

    worker = Worker(app)
    running = asyncio.create_task(worker.run())
    await task.enqueue()
    await signals.wait("ran")
    other = Leader(app, "other")
    await other.run_once()
    assert not other.leads
    worker.stop()
    await running
    await other.run_once()
    assert other.leads


def test_the_passes_have_names_of_their_own(app: Penstock) -> None:
    names = [service.name for service in upkeep_services(app, "me")]
    assert len(set(names)) == len(names)
    assert {"leader", "stage", "rescue", "roll_up", "prune", "unclaimed"} <= set(names)


async def test_types_that_nobody_runs_are_reported(
    app: Penstock, clock: FakeClock, leader: Leader
) -> None:
    @app.job
    async def task() -> None: ...

    unclaimed = Unclaimed(app, leader)
    assert await unclaimed.waiting() == {}
    await app.enqueue_many([task.new(), task.new()])
    assert await unclaimed.waiting() == {"task": 2}
    with structlog.testing.capture_logs() as lines:
        await unclaimed.run_once()
    assert lines == [
        {"event": "no_worker_for_type", "job_type": "task", "jobs": 2, "log_level": "warning"}
    ]
