import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import psutil
import pytest

from penstock import JobCancelled, Penstock, Status
from penstock.store.contract import Claim
from penstock.testing import FakeClock, Signals, in_memory
from penstock.testing import drain as drain_app
from penstock.worker import process
from penstock.worker.child import Child
from penstock.worker.processes import JobProcess, Processes
from penstock.worker.protocol import Log, Ready, frame
from tests.support.places import Place
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
        ("plain", "permission_denied", "PermissionError: not yours"),
        ("not picklable", "internal_error", "NotPicklable: this and that"),
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
    await pretend_rescued(app, suspect.id)
    await drain_app(app)
    assert await innocent.result(30) == os.getpid()
    assert await suspect.result(30) != os.getpid()


async def test_a_rescued_handler_finds_its_application_open_as_in_the_worker(app: Penstock) -> None:
    rescued = await handlers.uses_the_application.enqueue()
    await pretend_rescued(app, rescued.id)
    await drain_app(app)
    assert await rescued.result(30) != os.getpid()


@pytest.mark.every_store
async def test_a_process_keeps_its_application_open_from_one_coroutine_to_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = handlers.app
    monkeypatch.setattr(app, "settings", app.settings.replace(**place.settings))
    monkeypatch.delitem(app.__dict__, "store", raising=False)
    async with app, working(app, concurrency=1):
        found = [await (await handlers.count_closings.enqueue()).result(30) for _ in range(3)]
        after = await (await handlers.count_closings_in_function.enqueue()).result(30)
        again = await (await handlers.count_closings.enqueue()).result(30)
    pid = found[0][0]
    assert [*found, after, again] == [[pid, 0], [pid, 0], [pid, 0], [pid, 1], [pid, 1]]
    app.__dict__.pop("store", None)


async def test_a_process_finds_a_type_by_its_name_however_it_was_made(app: Penstock) -> None:
    pids = [
        handlers.by_another_name,
        handlers.made_in_a_function,
        handlers.made_for_a_process,
        handlers.HELD["nowhere else"],
    ]
    steps = [handlers.bound, handlers.bound_async, handlers.of_the_class, handlers.static]
    jobs = [await type_.enqueue() for type_ in [*pids, *steps]]
    jobs.append(await app.enqueue_payload("by-an-older-name"))
    for job in jobs:
        if (await job.get()).type in ("made-in-a-function", "bound-async"):
            await pretend_rescued(app, job.id)
    await drain_app(app)
    results = [await job.result(30) for job in jobs]
    assert [type(result) for result in results] == [int] * 4 + [list] * 4 + [int]
    found = [result if isinstance(result, int) else result[0] for result in results]
    assert os.getpid() not in found
    assert [result[1] for result in results[4:8]] == [4, 5, 2, 3]


async def test_a_lost_lease_and_its_successor_each_have_their_own_process(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[FakeChild] = []

    async def start(application: Any) -> FakeChild:
        children.append(FakeChild())
        return children[-1]

    monkeypatch.setattr(JobProcess, "start", start)
    job = await handlers.pid.enqueue()
    claim = Claim(owner="a:1", types=["pid"], limit=1, start=1, lease_ms=60_000)
    (lease,) = (await app.store.jobs.claim(claim)).leases
    successor = msgspec.structs.replace(lease, fence=lease.fence + 2)
    processes = Processes(app, size=2)
    running = [
        asyncio.ensure_future(processes.run(each, None, alone=False, ready=lambda: None))  # type: ignore[arg-type]
        for each in (lease, successor)
    ]
    await children_ready(children, 2)
    children[0].ended.set()
    await running[0]
    assert processes.kill(successor)
    await running[1]
    assert ([child.killed for child in children], job.id) == ([False, True], lease.id)
    assert not processes.kill(lease)


class FakeChild:
    """A child that ends when it is told to, or killed."""

    alive = True

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.runs = asyncio.Event()
        self.killed = False

    async def run(self, run: Any, reporter: Any) -> Any:
        self.runs.set()
        await self.ended.wait()

    def kill(self) -> None:
        self.killed = True
        self.ended.set()


async def children_ready(children: list[FakeChild], count: int) -> None:
    async with asyncio.timeout(30):
        while len(children) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for child in children:
            await child.runs.wait()


async def test_the_memory_of_a_process_is_that_of_its_own_job(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ballast = bytearray(150_000_000)  # a process starts with its parent's peak in `ru_maxrss`
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # one process for both
    large = await handlers.fill.options(priority=1).enqueue(100)
    small = await handlers.fill.options(priority=9).enqueue(1)
    await drain_app(app)
    assert len(ballast) == 150_000_000
    (much,), (little,) = [await app.executions(job.id) for job in (large, small)]
    assert much.memory_kb is not None
    assert little.memory_kb is not None
    assert little.memory_kb < 90_000 < 100_000 < much.memory_kb < 240_000


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def pretend_rescued(app: Penstock, job_id: str) -> None:
    database: Any = app.store._db  # type: ignore[attr-defined]
    await database.write(
        lambda tx: tx.connection.execute("UPDATE jobs SET rescues = 1 WHERE id = ?", (job_id,))
    )


def test_what_is_logged_in_the_middle_of_a_message_follows_it() -> None:
    sent: list[bytes] = []

    class Connection(socket.socket):
        def sendall(self, data: Any, *_: Any) -> None:
            sent.append(data)
            if len(sent) == 1:  # as an object that logs when it is freed
                child.send(Log(1, "info", "freed"))
                sent.append(b"the rest")

    with Connection() as connection:
        child = Child(connection)
        child.send(Ready())
    assert sent == [frame(Ready()), b"the rest", frame(Log(1, "info", "freed"))]
