import asyncio
from typing import Any

import pytest

from penstock import Context, JobCancelled, Penstock, Status
from penstock.testing import FakeClock, Signals
from tests.worker.running import becomes, working


async def test_a_running_handler_sees_the_flag_and_is_stopped_after_its_grace(
    app: Penstock, clock: FakeClock, cancels: Signals
) -> None:
    signals = cancels

    @app.job
    async def long(ctx: Context) -> None:
        signals.send("started")
        await signals.wait("cancel heard")
        signals.send("flagged", ctx.cancelled)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            signals.send("cancelled")
            raise

    job = await long.enqueue()
    async with working(app):
        await signals.wait("started")
        assert await app.cancel(job.id, "withdrawn") is Status.IN_PROGRESS
        assert await signals.wait("flagged") is True
        clock.advance(app.settings.cancel_grace)
        await signals.wait("cancelled")
        with pytest.raises(JobCancelled, match="withdrawn"):
            await job.result(timeout=30)
    found = await job.get()
    assert (found.status, found.attempts) == (Status.CANCELLED, 0)
    assert [e.status for e in await app.executions(job.id)] == ["cancelled"]


async def test_a_handler_that_raises_after_a_cancel_is_cancelled_and_not_retried(
    app: Penstock, cancels: Signals
) -> None:
    signals = cancels

    @app.job
    async def long(ctx: Context) -> None:
        signals.send("started")
        await signals.wait("cancel heard")
        raise ConnectionError("the work was cut short")

    job = await long.enqueue()
    async with working(app):
        await signals.wait("started")
        await job.cancel()
        with pytest.raises(JobCancelled):
            await job.result(timeout=30)


async def test_a_thread_that_ignores_the_flag_is_abandoned_after_its_grace(
    app: Penstock, clock: FakeClock, cancels: Signals
) -> None:
    signals = cancels

    @app.job
    def long(ctx: Context) -> None:
        signals.send("started", ctx)
        signals.wait_in_thread("go", timeout=60)

    job = await long.enqueue()
    async with working(app) as worker:
        ctx = await signals.wait("started")
        await job.cancel()
        await signals.wait("cancel heard")
        assert ctx.cancelled
        clock.advance(app.settings.cancel_grace)
        with pytest.raises(JobCancelled):
            await job.result(timeout=30)
        assert worker._executor.threads.abandoned == 1
        signals.send("go")


async def test_a_retry_of_a_job_that_was_cancelled_meanwhile_is_a_cancellation(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel comes after the handler ended and before its settlement is written."""

    @app.job
    async def flaky() -> None:
        raise ConnectionError

    settle = app.store.jobs.settle

    async def cancel_first(owner: str, settlements: Any) -> list[str]:
        for settlement in settlements:
            await app.cancel(settlement.id, "just in time")
        return await settle(owner, settlements)

    monkeypatch.setattr(app.store.jobs, "settle", cancel_first)
    job = await flaky.enqueue()
    async with working(app):
        ended = await becomes(app, job.id, lambda j: j.status.terminal)
    assert (ended.status, ended.error) == (Status.CANCELLED, "just in time")


async def test_stopping_waits_for_what_runs(app: Penstock) -> None:
    signals = Signals()

    @app.job
    async def long() -> str:
        signals.send("started")
        await asyncio.to_thread(signals.wait_in_thread, "go")
        return "finished"

    job = await long.enqueue()
    left = await long.options(delay=0).enqueue()
    async with working(app, concurrency=1) as worker:
        await signals.wait("started")
        worker.stop()
        signals.send("go")
        assert await job.result(timeout=30) == "finished"
    assert (await left.get()).status in (Status.QUEUED, Status.COMPLETED)


async def test_stopping_at_once_hands_jobs_back_without_spending_an_attempt(
    app: Penstock, drain: Any
) -> None:
    signals = Signals()

    @app.job
    async def long(ctx: Context) -> int:
        signals.send("started")
        if ctx.fence == 1:
            await asyncio.Event().wait()
        return ctx.fence

    job = await long.enqueue()
    async with working(app):
        await signals.wait("started")
    found = await job.get()
    assert (found.status, found.attempts, found.rescues) == (Status.QUEUED, 0, 0)
    assert [e.status for e in await app.executions(job.id)] == ["interrupted"]
    await drain()
    assert await job.result(timeout=30) == 3  # the hand-back took a fence of its own


async def test_prefetched_jobs_go_back_untouched(app: Penstock) -> None:
    signals = Signals()

    @app.job
    async def task(block: bool) -> None:
        if block:
            signals.send("started")
            await asyncio.Event().wait()

    await app.enqueue_many([task.new(False) for _ in range(400)])
    await app.enqueue_many([task.new(True) for _ in range(100)])
    async with working(app, concurrency=2):
        await signals.wait("started", times=2)
    jobs = await app.find(status="queued", limit=200)
    assert len(jobs) == 100
    assert {(job.attempts, job.rescues) for job in jobs} == {(0, 0)}
    assert await app.find(status="in_progress") == []
