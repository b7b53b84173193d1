import asyncio
from typing import Any

import pytest

from penstock import Context, Penstock, Status, Worker
from penstock.model.store_errors import StoreUnavailable
from penstock.testing import enqueued
from penstock.worker import pump


class Flaky:
    """A method of the store that fails a few times, before or after it did its work."""

    def __init__(self, method: Any, failures: int, error: Exception, *, after: bool = False):
        self.calls = 0
        self.called = asyncio.Event()
        self._method = method
        self._failures = failures
        self._error = error
        self._after = after

    async def __call__(self, *args: Any) -> Any:
        self.calls += 1
        self.called.set()
        fails = self.calls <= self._failures
        if fails and not self._after:
            raise self._error
        answer = await self._method(*args)
        if fails:
            raise self._error
        return answer


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "RETRY_SECONDS", 0.001)


ERRORS = [StoreUnavailable("work.db", "the disk is away"), RuntimeError("a bug of ours")]


@pytest.mark.parametrize("error", ERRORS, ids=["store", "bug"])
@pytest.mark.parametrize("method", ["settle", "claim", "start", "report"])
@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_nothing_is_lost_when_the_store_fails_for_a_while(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, method: str, error: Exception
) -> None:
    flaky = Flaky(getattr(app.store.jobs, method), 2, error)
    monkeypatch.setattr(app.store.jobs, method, flaky)

    @app.job
    async def task(ctx: Context, number: int) -> int:
        ctx.log(f"line {number}")
        if number == 199:  # one that has ended already needs no mark that it started
            await flaky.called.wait()
        return number

    jobs = await app.enqueue_many([task.new(n) for n in range(200)])
    worker = Worker(app, concurrency=5, burst=True, upkeep=False)
    await worker.run()
    assert flaky.calls > (0 if method == "start" else 2)
    for number, job in enumerate(jobs):
        assert await job.result(timeout=30) == number
    for job in await enqueued(app):
        assert (job.attempts, job.fence) == (1, 1)
    assert worker.recycling.chosen is None
    if method != "report":  # a settled job's words come too late
        assert [line.message for line in await app.logs(jobs[7].id)] == ["line 7"]


async def test_a_settlement_whose_answer_was_lost_is_settled_once(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Flaky(app.store.jobs.settle, 1, ERRORS[0], after=True)
    monkeypatch.setattr(app.store.jobs, "settle", lost)

    @app.job
    async def task() -> str:
        return "ran"

    job = await task.enqueue()
    await Worker(app, burst=True, upkeep=False).run()
    assert await job.result(timeout=30) == "ran"
    assert [e.status for e in await app.executions(job.id)] == ["completed"]


async def test_last_words_are_written_before_the_settlement(app: Penstock, drain: Any) -> None:
    @app.job(max_retries=0)
    async def talk(ctx: Context) -> None:
        ctx.progress(99, "almost")
        ctx.log("last words")
        raise PermissionError

    job = await talk.enqueue()
    await drain()
    found = await job.get()
    assert found.status is Status.DEAD_LETTER
    assert (found.progress_percent, found.progress_message) == (99, "almost")
    assert [line.message for line in await app.logs(job.id)] == ["last words"]


async def test_a_bug_of_ours_leaves_the_job_to_a_rescue_and_not_in_limbo(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, clock: Any
) -> None:
    from penstock.worker.execution import Executor

    async def broken(self: Any, running: Any) -> None:
        raise RuntimeError("a bug of ours")

    @app.job
    async def task() -> str:
        return "ran"

    job = await task.enqueue()
    with monkeypatch.context() as patch:
        patch.setattr(Executor, "run", broken)
        worker = Worker(app, burst=True, upkeep=False)
        await worker.run()
    assert (await job.get()).status is Status.IN_PROGRESS
    clock.advance(61)
    await app.store.upkeep.rescue()
    await Worker(app, burst=True, upkeep=False).run()
    assert await job.result(timeout=30) == "ran"
