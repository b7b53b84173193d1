import asyncio
from typing import Any

from penstock import Context, Penstock, Status
from penstock.testing import FakeClock, Signals
from tests.worker.running import becomes, working


async def test_an_async_handler_past_its_timeout_is_cancelled_and_retried_with_more_time(
    app: Penstock, clock: FakeClock
) -> None:
    signals = Signals()

    @app.job(timeout=30)
    async def slow(ctx: Context) -> str:
        if ctx.attempt == 2:
            return "in time"
        signals.send("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            signals.send("cancelled")
            raise
        return "never"

    job = await slow.enqueue()
    async with working(app):
        await signals.wait("started")
        clock.advance(29)
        assert (await job.get()).status is Status.IN_PROGRESS
        clock.advance(1)
        failed = await becomes(app, job.id, lambda j: j.status is Status.FAILED)
        assert signals.values("cancelled") == [None]
        assert (failed.attempts, failed.timeout_ms) == (1, 60_000)
        assert failed.error == "TimeoutError: The handler did not finish within 30 s."
        clock.advance(10)
        assert await job.result(timeout=30) == "in time"
    first, second = await app.executions(job.id)
    assert (first.status, first.error_class, second.status) == ("failed", "timeout", "completed")


async def test_a_timeout_is_told_to_the_failure_hook(app: Penstock, clock: FakeClock) -> None:
    signals = Signals()
    app.on_failed(lambda ctx, error: signals.send("failed", error))

    @app.job(timeout=30)
    async def slow() -> None:
        signals.send("started")
        await asyncio.Event().wait()

    await slow.enqueue()
    async with working(app):
        await signals.wait("started")
        clock.advance(30)
        assert isinstance(await signals.wait("failed"), TimeoutError)


async def test_a_value_returned_after_the_cancellation_by_a_timeout_completes_the_job(
    app: Penstock, clock: FakeClock
) -> None:
    signals = Signals()

    @app.job(timeout=30, max_retries=0)
    async def stubborn() -> str:
        signals.send("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late, but done"
        return "never"

    job = await stubborn.enqueue()
    async with working(app):
        await signals.wait("started")
        clock.advance(30)
        assert await job.result(timeout=30) == "late, but done"


async def test_a_thread_past_its_timeout_is_abandoned_and_the_job_retried(
    app: Penstock, clock: FakeClock
) -> None:
    signals = Signals()

    @app.job(timeout=30)
    def slow(ctx: Context) -> str:
        if ctx.attempt == 2:
            return "in time"
        signals.send("started")
        signals.wait_in_thread("go", timeout=60)
        return "too late"

    job = await slow.enqueue()
    async with working(app) as worker:
        await signals.wait("started")
        clock.advance(30)
        await becomes(app, job.id, lambda j: j.status is Status.FAILED)
        assert worker._executor.threads.abandoned == 1
        clock.advance(10)
        assert await job.result(timeout=30) == "in time"
        signals.send("go")
    assert (await job.get()).result == '"in time"'


async def test_a_handler_that_ignores_its_end_loses_its_slot_and_its_lease(
    app: Penstock, clock: FakeClock
) -> None:
    signals = Signals()
    app.settings = app.settings.replace(timeout_grace=5, renew_interval=0.02)

    @app.job(timeout=30)
    async def deaf() -> None:
        signals.send("started")
        while not signals.values("go"):
            try:
                await asyncio.to_thread(signals.wait_in_thread, "go")
            except asyncio.CancelledError:
                signals.send("ignored")

    @app.job
    async def next_one() -> str:
        return "ran"

    job = await deaf.enqueue()
    async with working(app, concurrency=1) as worker:
        await signals.wait("started")
        clock.advance(30)
        await signals.wait("ignored")
        clock.advance(5)
        other = await next_one.enqueue()
        assert await other.result(timeout=30) == "ran"
        assert job.id not in {held.id for held in worker._holdings.to_renew([]).leases}
        signals.send("go")
    assert (await job.get()).status is Status.IN_PROGRESS
    clock.advance(61)
    (rescued,) = await app.store.upkeep.rescue()
    assert rescued.id == job.id


async def test_time_spent_in_the_queue_is_no_time_of_the_handler(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    @app.job(timeout=30)
    async def task() -> str:
        return "ran"

    job = await task.enqueue()
    clock.advance(3600)
    await drain()
    assert await job.result(timeout=30) == "ran"
    (execution,) = await app.executions(job.id)
    assert execution.wait_ms == 3_600_000
