import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock import Context, Penstock, Status
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Beat, Held, Renewal, Store
from penstock.testing import FakeClock, Signals
from penstock.worker.leases import Heartbeat, ToRenew
from tests.worker.running import becomes, working


@pytest.fixture
def renewals(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> Signals:
    """Signals `asked` before and `renewed` after every renewal."""
    app.settings = app.settings.replace(renew_interval=0.02)
    signals = Signals()
    renew = app.store.leases.renew

    def signalled(owner: str, held: Any, **more: Any) -> Any:
        signals.send("asked", held)
        answer = renew(owner, held, **more)
        signals.send("renewed", answer)
        return answer

    monkeypatch.setattr(app.store.leases, "renew", signalled)
    return signals


async def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(
    app: Penstock, clock: FakeClock, renewals: Signals
) -> None:
    @app.job
    async def rude(ctx: Context) -> str:
        for _ in range(5):
            clock.advance(app.settings.lease / 2)
            renewals.wait_in_thread("renewed", times=len(renewals.values("renewed")) + 2)
        return "done"

    job = await rude.options(timeout=1800).enqueue()
    async with working(app):
        assert await job.result(timeout=60) == "done"
    found = await job.get()
    assert (found.attempts, found.rescues, found.fence) == (1, 0, 1)


async def test_a_lease_is_renewed_on_the_stores_clock(
    app: Penstock, clock: FakeClock, renewals: Signals
) -> None:
    @app.job
    async def long() -> None:
        renewals.send("started")
        await asyncio.Event().wait()

    job = await long.enqueue()
    async with working(app):
        await renewals.wait("started")
        clock.advance(50)
        await renewals.wait("renewed", times=len(renewals.values("renewed")) + 2)
        clock.advance(50)
        assert await app.store.upkeep.rescue() == []
        assert (await job.get()).status is Status.IN_PROGRESS


async def test_a_lost_lease_stops_its_execution_which_settles_nothing(
    app: Penstock, renewals: Signals
) -> None:
    @app.job
    async def long(ctx: Context) -> str:
        if ctx.fence > 1:
            return f"fence {ctx.fence}"
        renewals.send("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            renewals.send("stopped")
            raise
        return "never"

    job = await long.enqueue()
    async with working(app, concurrency=1) as worker:
        await renewals.wait("started")
        (rescued,) = await app.store.upkeep.rescue(owner=worker.owner)
        assert rescued.id == job.id
        await renewals.wait("stopped")
        assert await job.result(timeout=30) == "fence 3"
        assert worker._pump.stale_total == 0
        assert worker._pump.running == 0
    assert [e.status for e in await app.executions(job.id)] == ["lost", "completed"]


async def test_a_prefetched_lease_that_was_lost_is_never_started(
    app: Penstock, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.settings = app.settings.replace(renew_interval=0.02)
    loop, renew = asyncio.get_running_loop(), app.store.leases.renew
    prefetched: set[str] = set()
    runs: list[tuple[str, int]] = []

    def rescued_meanwhile(owner: str, held: Any, **more: Any) -> Any:
        """Have the leases rescued while the worker asks for all of them, not before or after."""
        if prefetched and prefetched <= {each.id for each in held} and not signals.values("lost"):
            rescue = app.store.upkeep.rescue(owner=owner)
            signals.send("lost", asyncio.run_coroutine_threadsafe(rescue, loop).result(30))
        return renew(owner, held, **more)

    monkeypatch.setattr(app.store.leases, "renew", rescued_meanwhile)

    @app.job
    async def task(ctx: Context, block: bool) -> None:
        if block:
            runs.append((ctx.id, ctx.fence))
            if len(runs) <= 2:  # until its lease is lost
                signals.send("started")
                await asyncio.Event().wait()

    await app.enqueue_many([task.new(False) for _ in range(400)])
    async with working(app, concurrency=2) as worker:
        last = await app.enqueue_many([task.new(True) for _ in range(40)])
        await signals.wait("started", times=2)
        async with asyncio.timeout(30):
            while not worker._pump.waiting:  # noqa: ASYNC110 - its next claim brings some
                await asyncio.sleep(0)
        prefetched |= {lease.id for lease in worker._pump.waiting}
        await signals.wait("lost")
        for job in last:
            await becomes(app, job.id, lambda j: j.status is Status.COMPLETED)
    assert not {(job_id, 1) for job_id in prefetched} & set(runs)


async def test_a_heartbeat_survives_a_store_that_is_away(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.settings = app.settings.replace(renew_interval=0.02)
    signals = Signals()
    renew = app.store.leases.renew

    def flaky(owner: str, held: Any, **more: Any) -> Any:
        signals.send("asked")
        if len(signals.values("asked")) <= 3:
            raise StoreUnavailable("work.db", "the disk is away")
        signals.send("renewed")
        return renew(owner, held, **more)

    monkeypatch.setattr(app.store.leases, "renew", flaky)

    @app.job
    async def long() -> str:
        await asyncio.to_thread(signals.wait_in_thread, "renewed")
        return "done"

    job = await long.enqueue()
    async with working(app):
        assert await job.result(timeout=30) == "done"


async def test_a_store_that_cannot_tell_of_cancellations_does_not_end_the_worker(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = Signals()

    def broken(owner: str) -> list[str]:
        signals.send("asked")
        raise StoreUnavailable("work.db", "the disk is away")

    monkeypatch.setattr(app.store.leases, "cancel_requests", broken)

    @app.job
    async def long() -> str:
        await asyncio.to_thread(signals.wait_in_thread, "asked")
        return "done"

    job = await long.enqueue()
    async with working(app):
        assert await job.result(timeout=30) == "done"


async def test_a_type_with_a_short_lease_of_its_own_is_renewed_in_time(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = Signals()
    renew = app.store.leases.renew

    def signalled(owner: str, held: Any, **more: Any) -> Any:
        signals.send("renewed", held)
        return renew(owner, held, **more)

    monkeypatch.setattr(app.store.leases, "renew", signalled)

    @app.job(lease=0.3)
    async def brief() -> None:
        await asyncio.to_thread(signals.wait_in_thread, "renewed")

    job = await brief.enqueue()
    async with working(app):
        await job.result(timeout=30)
    assert signals.values("renewed")[0][0].lease_ms == 300


def test_a_renewal_that_failed_is_tried_again_long_before_the_next_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, renewals = 0.0, []

    def renew(*args: Any, **options: Any) -> Renewal:
        renewals.append(now)
        if len(renewals) == 1:
            raise StoreUnavailable("work.db", "the server is away")
        return Renewal([], [])

    def waits(seconds: float) -> bool:
        nonlocal now
        now += seconds
        return now > 60

    store = SimpleNamespace(
        leases=SimpleNamespace(renew=renew), workers=SimpleNamespace(beat=lambda beat: None)
    )
    heartbeat = Heartbeat(
        cast(Store, store),
        "owner:1",
        held=lambda: ToRenew([Held("job", 1, 60_000)], None, ()),
        beat=lambda: cast(Beat, None),
        heard=lambda renewal, held: None,
        renew_seconds=20,
        beat_seconds=60,
    )
    monkeypatch.setattr("penstock.worker.leases.time.monotonic", lambda: now)
    monkeypatch.setattr(heartbeat._stopping, "wait", waits)
    heartbeat._run()
    assert renewals == [20, 21, 41]
