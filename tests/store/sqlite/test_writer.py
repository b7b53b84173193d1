"""Group commit: what arrives together shares a transaction, and nothing is promised before it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

import apsw
import pytest

from penstock.model.job import NewJob
from penstock.model.store_errors import StoreClosed, StoreError, StoreUnavailable
from penstock.store.open import open_store
from penstock.store.relational import group_commit
from penstock.store.sqlite.connect import SqliteTransaction as Transaction
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.writer import Writer
from penstock.testing.clock import FakeClock


class Plug:
    """An operation that keeps the writer busy until it is pulled, so that others queue up."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._running = threading.Event()
        self._pulled = threading.Event()
        self._thread = threading.Thread(target=writer.call, args=(self._hold,))

    def __enter__(self) -> "Plug":
        self._thread.start()
        assert self._running.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.pull()
        self._thread.join()

    def pull(self) -> None:
        self._pulled.set()

    def _hold(self, tx: Transaction) -> None:
        self._running.set()
        assert self._pulled.wait(10)


class Commits:
    """Counts commits, and refuses them when asked to."""

    def __init__(self) -> None:
        self.count = 0
        self.refuses = False

    def __call__(self) -> bool:
        self.count += 1
        return self.refuses


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def commits() -> Commits:
    return Commits()


@pytest.fixture
def connection(path: Path, commits: Commits) -> apsw.Connection:
    connection = connect(path)
    connection.execute("CREATE TABLE notes (text TEXT NOT NULL UNIQUE)")
    connection.set_commit_hook(commits)
    return connection


@pytest.fixture
def writer(path: Path, connection: apsw.Connection) -> Iterator[Writer]:
    writer = Writer(str(path), connection, FakeClock(), lambda: None)
    yield writer
    writer.close()


def note(text: str) -> Callable[[Transaction], str]:
    def operation(tx: Transaction) -> str:
        tx.connection.execute("INSERT INTO notes VALUES (?)", (text,))
        return text

    return operation


def notes(path: Path) -> list[str]:
    reader = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
    try:
        return [str(row[0]) for row in reader.execute("SELECT text FROM notes ORDER BY rowid")]
    finally:
        reader.close()


async def test_concurrent_operations_share_one_commit(
    writer: Writer, path: Path, commits: Commits
) -> None:
    with Plug(writer) as plug:
        tasks = [asyncio.create_task(writer.run(note(f"{n}"))) for n in range(20)]
        await asyncio.sleep(0)
        before = commits.count
        plug.pull()
        assert await asyncio.gather(*tasks) == [f"{n}" for n in range(20)]
    # One for the plug, which was under way alone, and one for all the others.
    assert commits.count - before == 2
    assert notes(path) == [f"{n}" for n in range(20)]


async def test_an_operation_that_fails_takes_nothing_else_with_it(
    writer: Writer, path: Path
) -> None:
    def write_and_fail(tx: Transaction) -> None:
        note("taken back")(tx)
        raise ZeroDivisionError

    with Plug(writer) as plug:
        tasks = [
            asyncio.create_task(writer.run(operation))
            for operation in (note("before"), write_and_fail, note("before"), note("after"))
        ]
        await asyncio.sleep(0)
        plug.pull()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [str, ZeroDivisionError, StoreError, str]
    assert notes(path) == ["before", "after"]


async def test_nothing_is_acknowledged_while_another_connection_holds_the_lock(
    writer: Writer, path: Path, connection: apsw.Connection
) -> None:
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()

    def patience(tries: int) -> bool:
        loop.call_soon_threadsafe(waiting.set)
        return True

    connection.set_busy_handler(patience)
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(writer.run(note("late")))
    await waiting.wait()
    assert not task.done()
    assert notes(path) == []
    other.execute("ROLLBACK")
    other.close()
    assert await task == "late"


async def test_nothing_is_acknowledged_before_the_commit(
    writer: Writer, connection: apsw.Connection
) -> None:
    loop = asyncio.get_running_loop()
    done_at_commit: list[bool] = []

    async def look() -> bool:
        return any(task.done() for task in tasks)

    def committing() -> bool:
        done_at_commit.append(asyncio.run_coroutine_threadsafe(look(), loop).result(10))
        return False

    connection.set_commit_hook(committing)
    tasks = [asyncio.create_task(writer.run(note(f"{n}"))) for n in range(3)]
    await asyncio.gather(*tasks)
    assert done_at_commit
    assert not done_at_commit[0]


async def test_a_commit_that_fails_fails_every_operation_in_it(
    writer: Writer, path: Path, commits: Commits
) -> None:
    commits.refuses = True
    answers = await asyncio.gather(
        *(writer.run(note(f"{n}")) for n in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [StoreError] * 3
    commits.refuses = False
    assert await writer.run(note("the writer goes on")) == "the writer goes on"
    assert notes(path) == ["the writer goes on"]


async def test_closing_commits_what_was_submitted(writer: Writer, path: Path) -> None:
    with Plug(writer) as plug:
        tasks = [asyncio.create_task(writer.run(note(f"{n}"))) for n in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(writer.close))
        plug.pull()
        await closing
    assert notes(path) == ["0", "1", "2"]
    assert await asyncio.gather(*tasks) == ["0", "1", "2"]


class Dawdling:
    """The writer's queue, into which an operation goes only slowly."""

    def __init__(self, queue: SimpleQueue[Any]) -> None:
        self._queue = queue
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def put(self, entry: object) -> None:
        if entry is not None:
            self.begun.set()
            assert self.go_on.wait(10)
        self._queue.put(entry)

    def get(self) -> object:
        return self._queue.get()

    def empty(self) -> bool:
        return self._queue.empty()


def test_an_operation_submitted_while_the_writer_closes_is_answered(
    writer: Writer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Dawdling(writer._entries)
    monkeypatch.setattr(writer, "_entries", queue)
    answers: SimpleQueue[str] = SimpleQueue()
    submitting = threading.Thread(
        target=lambda: answers.put(asyncio.run(writer.run(note("just in time")))), daemon=True
    )
    submitting.start()
    assert queue.begun.wait(10)
    closing = threading.Thread(target=writer.close)
    closing.start()
    closing.join(0.2)  # a close that did not wait for the submission would be over by now
    queue.go_on.set()
    assert answers.get(timeout=10) == "just in time"
    closing.join()
    assert notes(path) == ["just in time"]


async def test_a_closed_writer_refuses_operations(writer: Writer) -> None:
    writer.close()
    with pytest.raises(StoreClosed):
        await writer.run(note("too late"))
    with pytest.raises(StoreClosed):
        writer.call(note("too late"))


async def test_a_closed_store_refuses_every_use(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.jobs.enqueue([NewJob(id="0", type="mail")])
    with pytest.raises(StoreClosed):
        await store.reader.get(["0"])
    with pytest.raises(StoreClosed):
        store.leases.renew("worker", [])


async def test_an_await_that_is_cancelled_still_commits(writer: Writer, path: Path) -> None:
    with Plug(writer) as plug:
        task = asyncio.create_task(writer.run(note("kept")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        plug.pull()
    assert await writer.run(note("next")) == "next"
    assert notes(path) == ["kept", "next"]


def _refuse_rollback(connection: apsw.Connection) -> None:
    connection.exec_trace = lambda cursor, statement, bindings: statement != "ROLLBACK"


def _fail(tx: Transaction) -> None:
    tx.connection.execute("INSERT INTO notes VALUES ('half')")
    raise ValueError("the operation itself")


def test_a_rollback_that_fails_costs_its_own_batch_and_no_later_one(
    path: Path, connection: apsw.Connection
) -> None:
    writer = Writer(
        str(path), connection, FakeClock(), lambda: None, reconnect=lambda: connect(path)
    )
    _refuse_rollback(connection)
    with pytest.raises(ValueError, match="the operation itself"):
        writer.call(_fail)
    writer.call(lambda tx: tx.connection.execute("INSERT INTO notes VALUES ('later')"))
    assert writer.call(lambda tx: tx.connection.execute("SELECT text FROM notes").get) == "later"
    writer.close()


def test_without_a_way_back_later_calls_are_refused_and_none_waits(
    path: Path, connection: apsw.Connection
) -> None:
    writer = Writer(str(path), connection, FakeClock(), lambda: None)
    _refuse_rollback(connection)
    with pytest.raises(ValueError, match="the operation itself"):
        writer.call(_fail)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="could not undo"):
            writer.call(lambda tx: None)
    writer.close()


def test_an_error_outside_every_operation_is_told_to_who_waits(
    path: Path, connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(str(path), connection, FakeClock(), lambda: None)
    with monkeypatch.context() as patched:
        patched.setattr(writer, "commit", _raise)
        with pytest.raises(ZeroDivisionError):
            writer.call(lambda tx: None)
    assert writer.call(lambda tx: 1) == 1
    writer.close()


def _raise(batch: object) -> bool:
    raise ZeroDivisionError


def whereabouts(_: Transaction) -> str:
    return threading.current_thread().name


async def test_a_lone_brief_operation_is_committed_by_the_thread_of_its_caller(
    writer: Writer,
) -> None:
    here = threading.current_thread().name
    assert await writer.run(whereabouts, brief=True) == here
    assert writer.call(whereabouts) == here
    assert await writer.run(whereabouts) == "penstock-writer"


async def test_brief_operations_of_one_moment_share_one_commit(
    writer: Writer, path: Path, commits: Commits
) -> None:
    await asyncio.gather(*(writer.run(note(f"{n}"), brief=True) for n in range(20)))
    assert commits.count < 20
    assert sorted(notes(path), key=int) == [f"{n}" for n in range(20)]


async def test_a_brief_operation_that_fails_leaves_nothing_and_tells_its_caller(
    writer: Writer, path: Path
) -> None:
    await writer.run(note("once"), brief=True)
    with pytest.raises(StoreError):
        await writer.run(note("once"), brief=True)
    with pytest.raises(StoreError):
        writer.call(note("once"))
    assert notes(path) == ["once"]


async def test_the_event_loop_waits_for_nobody_s_lock(writer: Writer, path: Path) -> None:
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    brief = asyncio.create_task(writer.run(whereabouts, brief=True))
    for _ in range(5):
        await asyncio.sleep(0)  # a loop that waited itself would stop here for good
    assert not brief.done()
    other.execute("COMMIT")
    assert await brief == "penstock-writer"
    other.close()


async def test_on_a_slow_disk_the_event_loop_leaves_the_commit_to_the_writer(
    writer: Writer,
) -> None:
    writer._usual_seconds = 0.05
    assert await writer.run(whereabouts, brief=True) == "penstock-writer"


async def test_a_checkpoint_that_is_due_is_made_by_the_writer_s_own_thread(
    writer: Writer, connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.sqlite.connect.WAL_PAGES", 1)
    writer.call(note("fills the WAL"))
    assert await writer.run(whereabouts, brief=True) == "penstock-writer"
    writer.close()
    assert writer._wal_pages == 0


def test_a_lone_brief_commit_on_a_slow_disk_is_followed_by_no_gap(writer: Writer) -> None:
    slow = threading.Event()
    writer.call(lambda tx: slow.wait(0.005), brief=True)
    assert writer._free_until == 0
    writer.call(lambda tx: slow.wait(0.005))
    assert writer._free_until > 0


async def turns(loop_turned: list[int]) -> None:
    while True:
        loop_turned[0] += 1
        await asyncio.sleep(0)


async def test_a_task_that_writes_alone_does_not_wait_for_a_turn_of_the_loop(
    writer: Writer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "TURN_SECONDS", 60)
    monkeypatch.setattr("penstock.store.sqlite.writer.BRIEF_SECONDS", 60)
    await writer.run(note("first"), brief=True)
    turned = [0]
    others = asyncio.create_task(turns(turned))
    for n in range(5):
        await writer.run(note(f"{n}"), brief=True)
    others.cancel()
    assert turned == [0]
    assert notes(path) == ["first", "0", "1", "2", "3", "4"]


async def test_a_task_that_writes_alone_leaves_the_others_their_turns(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "TURN_SECONDS", 0)
    turned = [0]
    others = asyncio.create_task(turns(turned))
    for n in range(5):
        await writer.run(note(f"{n}"), brief=True)
    others.cancel()
    assert turned[0] >= 5


async def test_tasks_that_write_again_and_again_share_their_commits(
    writer: Writer, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "TURN_SECONDS", 60)
    monkeypatch.setattr("penstock.store.sqlite.writer.BRIEF_SECONDS", 60)

    async def write(name: str) -> None:
        for n in range(5):
            await writer.run(note(f"{name}{n}"), brief=True)

    await asyncio.gather(*(write(f"{task}-") for task in range(20)))
    assert commits.count < 20
