import os
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from penstock import JobCancelled, Penstock, Status
from penstock.testing import FakeClock, Signals, in_memory
from penstock.testing import drain as drain_app
from penstock.worker import process
from tests.worker import handlers
from tests.worker.running import becomes, working


@pytest.fixture
def app(clock: FakeClock) -> Iterator[Penstock]:
    with in_memory(handlers.app, clock) as application:
        yield application


def test_a_worker_without_uvloop_begins_no_traceback_with_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def serve(_: process.WorkerSpec) -> int:
        return 0 if sys.exc_info()[1] is None else 1

    monkeypatch.setitem(sys.modules, "uvloop", None)
    monkeypatch.setattr(process, "serve", serve)
    monkeypatch.setattr(process, "configure_logs", lambda **_: None)
    assert process.run(process.WorkerSpec(target="shop:app")) == 0


async def test_a_process_is_kept_warm_and_says_what_its_handler_says(app: Penstock) -> None:
    first = await handlers.pid.enqueue()
    second = await handlers.pid.options(delay=0).enqueue()
    third = await handlers.pid_async.enqueue()
    await drain_app(app)
    pids = {await first.result(30), await second.result(30)}
    child, fence = await third.result(30)
    assert os.getpid() not in pids | {child}
    assert fence == 1
    found = await third.get()
    assert (found.progress_percent, found.progress_message) == (50, "half")
    assert found.checkpoint == f'{{"pid":{child}}}'
    assert [line.message for line in await app.logs(third.id)] == ["hello from a process"]
    (execution,) = await app.executions(third.id)
    assert execution.memory_kb is not None
    assert execution.cpu_ms is not None


@pytest.mark.parametrize(
    ("how", "error_class", "message"),
    [
        ("plain", "permission_denied", "not yours"),
        ("not picklable", "internal_error", "this and that"),
        ("exit", "unknown", "SystemExit"),
        ("unserializable", "validation_error", "returned a object"),
    ],
)
async def test_what_a_handler_raises_in_its_process_is_judged_like_anywhere_else(
    app: Penstock, how: str, error_class: str, message: str
) -> None:
    job = await handlers.fail.enqueue(how)
    await drain_app(app)
    (execution,) = await app.executions(job.id)
    assert (execution.status, execution.error_class) == ("dead", error_class)
    assert message in str(execution.error)


async def test_an_outcome_returned_in_a_process_counts(app: Penstock) -> None:
    job = await handlers.fail.enqueue("snooze")
    await drain_app(app)
    assert (await job.get()).status is Status.PENDING


async def test_a_process_that_dies_convicts_only_its_own_job(app: Penstock) -> None:
    job, sibling = await handlers.die.enqueue(9), await handlers.pid.enqueue()
    await drain_app(app)
    found = await job.get()
    assert (found.status, found.rescues) == (Status.DEAD_LETTER, 3)
    assert "exited with code 9" in str(found.error)
    assert (await sibling.get()).attempts == 1


async def test_a_process_past_its_timeout_is_killed(app: Penstock, clock: FakeClock) -> None:
    job = await handlers.hang.options(timeout=30).enqueue()
    async with working(app):
        await becomes(app, job.id, lambda j: j.progress_percent is not None)
        pid = int((await app.logs(job.id))[0].message)
        assert psutil.pid_exists(pid)
        clock.advance(30)
        failed = await becomes(app, job.id, lambda j: j.status is Status.FAILED)
        assert not _alive(pid)
    assert "within 30 s" in str(failed.error)
    assert (failed.attempts, failed.rescues) == (1, 0)


async def test_a_process_hears_of_a_cancel_and_may_end_by_itself(app: Penstock) -> None:
    job = await handlers.wait_for_stop.enqueue()
    async with working(app):
        await becomes(app, job.id, lambda j: j.progress_percent is not None)
        await job.cancel()
        assert await job.result(timeout=30) == "stopped early"


async def test_a_process_that_ignores_a_cancel_is_killed_after_its_grace(
    app: Penstock, clock: FakeClock, cancels: Signals
) -> None:
    job = await handlers.hang.enqueue()
    async with working(app):
        await becomes(app, job.id, lambda j: j.progress_percent is not None)
        pid = int((await app.logs(job.id))[0].message)
        await job.cancel("enough")
        await cancels.wait("cancel heard")
        clock.advance(app.settings.cancel_grace)
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=30)
        assert not _alive(pid)


async def test_no_process_outlives_its_worker(app: Penstock) -> None:
    job = await handlers.hang.enqueue()
    async with working(app):
        await becomes(app, job.id, lambda j: j.progress_percent is not None)
        pid = int((await app.logs(job.id))[0].message)
    assert not _alive(pid)
    assert (await job.get()).status is Status.QUEUED


async def test_a_job_that_was_rescued_runs_next_in_a_process_of_its_own(app: Penstock) -> None:
    innocent, suspect = await handlers.where.enqueue(), await handlers.where.enqueue()
    await _pretend_rescued(app, suspect.id)
    await drain_app(app)
    assert await innocent.result(30) == os.getpid()
    assert await suspect.result(30) != os.getpid()


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def _pretend_rescued(app: Penstock, job_id: str) -> None:
    database: Any = app.store._db  # type: ignore[attr-defined]
    await database.write(
        lambda tx: tx.connection.execute("UPDATE jobs SET rescues = 1 WHERE id = ?", (job_id,))
    )
