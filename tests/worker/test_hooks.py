"""Hooks are told after the verdict: how long they take, and how they end, changes nothing."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import Context, Penstock, Status
from penstock.testing import FakeClock, Signals
from penstock.worker.leases import Holdings
from tests.worker.running import becomes, working


@pytest.fixture
def hook(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hook that signals `told`, then waits for `go`; a look at deadlines signals `ticked`."""
    tick = Holdings.tick

    def ticked(self: Holdings) -> int:
        signals.send("ticked")
        return tick(self)

    monkeypatch.setattr(Holdings, "tick", ticked)

    async def wait(ctx: Context, *args: Any) -> None:
        signals.send("told", args)
        await asyncio.to_thread(signals.wait_in_thread, "go")

    return wait


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_slow_hook_on_failure_leaves_the_real_error(
    app: Penstock, clock: FakeClock, signals: Signals, hook: Any, run_in: str
) -> None:
    app.on_failed(hook)

    def fails() -> None:
        raise PermissionError("not yours")

    async def fails_async() -> None:
        fails()

    type_ = app.job(name="fails", max_retries=0)(fails if run_in == "thread" else fails_async)
    job = await type_.options(timeout=1).enqueue()
    async with working(app):
        await signals.wait("told")
        clock.advance(3)
        await signals.wait("ticked", times=len(signals.values("ticked")) + 2)
        signals.send("go")
        found = await becomes(app, job.id, lambda j: j.status is Status.DEAD_LETTER)
    assert (found.rescues, found.attempts) == (0, 1)
    assert "not yours" in str(found.error)


async def test_a_slow_hook_on_completion_leaves_the_value(
    app: Penstock, clock: FakeClock, signals: Signals, hook: Any
) -> None:
    app.on_complete(hook)

    @app.job
    async def returns() -> int:
        return 7

    job = await returns.options(timeout=1).enqueue()
    async with working(app):
        await signals.wait("told")
        clock.advance(3)
        await signals.wait("ticked", times=len(signals.values("ticked")) + 2)
        signals.send("go")
        assert await job.result(timeout=30) == 7
    assert (await job.get()).attempts == 1
    assert signals.values("told") == [(7,)]


async def test_a_slow_hook_at_the_start_takes_nothing_from_the_handlers_time(
    app: Penstock, clock: FakeClock, signals: Signals, hook: Any
) -> None:
    app.on_start(hook)

    @app.job(max_retries=0)
    async def returns() -> int:
        return 7

    job = await returns.options(timeout=1).enqueue()
    async with working(app):
        await signals.wait("told")
        clock.advance(3)
        await signals.wait("ticked", times=len(signals.values("ticked")) + 2)
        signals.send("go")
        assert await job.result(timeout=30) == 7


async def test_a_shutdown_during_a_hook_settles_what_was_judged(
    app: Penstock, signals: Signals
) -> None:
    app.settings = app.settings.replace(drain_timeout=0)

    @app.on_complete
    async def endless(ctx: Context, result: Any) -> None:
        signals.send("told")
        await asyncio.Event().wait()

    runs: list[int] = []

    @app.job
    async def returns() -> int:
        runs.append(1)
        return 7

    job = await returns.enqueue()
    async with working(app):
        await signals.wait("told")
    assert ((await job.get()).status, runs) == (Status.COMPLETED, [1])


async def test_a_hook_that_holds_on_to_its_execution_does_not_keep_it_from_its_end(
    app: Penstock, clock: FakeClock, signals: Signals
) -> None:
    @app.on_failed
    async def deaf(ctx: Context, error: BaseException) -> None:
        signals.send("told")
        while not signals.values("go"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                signals.send("cancelled")

    @app.job(max_retries=0)
    async def fails() -> None:
        raise PermissionError("not yours")

    job = await fails.enqueue()
    async with working(app) as worker:
        await signals.wait("told")
        clock.advance(app.settings.hook_timeout)
        await signals.wait("cancelled")
        clock.advance(app.settings.timeout_grace)
        found = await becomes(app, job.id, lambda j: j.status is Status.DEAD_LETTER)
        assert "not yours" in str(found.error)
        assert worker._pump.running == 0
        signals.send("go")


async def test_a_hook_that_overruns_is_abandoned_and_the_next_is_told(
    app: Penstock, drain: Any
) -> None:
    app.settings = app.settings.replace(hook_timeout=0.01)
    told: list[str] = []

    @app.on_complete
    async def endless(ctx: Context, result: Any) -> None:
        await asyncio.Event().wait()

    app.on_complete(lambda ctx, result: told.append(result))

    @app.job
    async def returns() -> str:
        return "fine"

    job = await returns.enqueue()
    with capture_logs() as lines:
        await drain()
    assert (await job.result(timeout=30), told) == ("fine", ["fine"])
    (line,) = [line for line in lines if line["event"] == "hook_overran"]
    assert line["hook"].endswith("endless")


@pytest.mark.parametrize("raised", [SystemExit(3), asyncio.CancelledError(), TimeoutError()])
async def test_whatever_a_hook_raises_is_logged_and_the_value_stands(
    app: Penstock, drain: Any, raised: BaseException
) -> None:
    @app.on_start
    @app.on_complete
    async def broken(*args: Any) -> None:
        raise raised

    @app.job
    async def returns() -> str:
        return "fine"

    job = await returns.enqueue()
    with capture_logs() as lines:
        await drain()
    assert await job.result(timeout=30) == "fine"
    assert [line["event"] for line in lines].count("hook_failed") == 2


async def test_an_execution_keeps_its_lease_while_its_hooks_run(
    app: Penstock, clock: FakeClock, signals: Signals, hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.settings = app.settings.replace(renew_interval=0.02, hook_timeout=3600)
    app.on_complete(hook)
    renew = app.store.leases.renew

    def signalled(owner: str, held: Any, **more: Any) -> Any:
        answer = renew(owner, held, **more)
        signals.send("renewed")
        return answer

    monkeypatch.setattr(app.store.leases, "renew", signalled)

    @app.job
    async def returns() -> int:
        return 7

    job = await returns.options(timeout=1).enqueue()
    async with working(app):
        await signals.wait("told")
        for _ in range(3):
            clock.advance(app.settings.lease / 2)
            await signals.wait("renewed", times=len(signals.values("renewed")) + 2)
            assert await app.store.upkeep.rescue() == []
        signals.send("go")
        assert await job.result(timeout=30) == 7
    assert (await job.get()).rescues == 0


async def test_a_slow_hook_on_progress_does_not_keep_the_lines_of_others(
    app: Penstock, signals: Signals
) -> None:
    app.settings = app.settings.replace(hook_timeout=0.01)

    @app.on_progress
    async def endless(*args: Any) -> None:
        await asyncio.Event().wait()

    @app.job
    async def says(ctx: Context, number: int) -> None:
        ctx.progress(number)
        await asyncio.to_thread(signals.wait_in_thread, "go")

    async with working(app):
        for number in (10, 20):
            job = await says.enqueue(number)
            await becomes(app, job.id, lambda j, n=number: j.progress_percent == n)
        signals.send("go")


async def test_a_type_that_needs_no_context_keeps_the_short_way_beside_hooks(
    app: Penstock, drain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    app.on_complete(lambda ctx, result: told.append((ctx.job.type, result)))

    @app.job
    async def plain() -> int:
        task = asyncio.current_task()
        assert task is not None
        return len(task.get_stack())

    job = await plain.enqueue()
    await drain()
    assert told == [("plain", await job.result(timeout=30))]
