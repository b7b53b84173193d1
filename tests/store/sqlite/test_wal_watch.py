"""The WAL watch notices every commit, whoever makes it, and costs nothing otherwise."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue

import apsw
import pytest

from penstock.store.sqlite import wal_watch
from penstock.store.sqlite.wal_watch import WalWatch

PATIENCE = 10.0
COMMIT = """
import apsw, sys
apsw.Connection(sys.argv[1]).execute("INSERT INTO numbers VALUES (1)")
"""


class Calls:
    """A callback that remembers when it was called."""

    def __init__(self) -> None:
        self._times: SimpleQueue[float] = SimpleQueue()

    def __call__(self) -> None:
        self._times.put(time.monotonic())

    def next(self) -> float:
        return self._times.get(timeout=PATIENCE)

    def waiting(self) -> Iterator[float]:
        while True:
            try:
                yield self._times.get_nowait()
            except Empty:
                return


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def connection(path: Path) -> Iterator[apsw.Connection]:
    opened = create(path)
    yield opened
    opened.close()


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def watching(path: Path) -> Iterator[Callable[[Callable[[], None]], WalWatch]]:
    started: list[WalWatch] = []

    def watch(on_change: Callable[[], None]) -> WalWatch:
        started.append(WalWatch(path, on_change))
        started[-1].start()
        return started[-1]

    yield watch
    for each in started:
        each.stop()


@pytest.fixture
def without_inotify(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(wal: str) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(wal_watch, "_InotifyBell", refuse)


def create(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(int(PATIENCE * 1000))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS numbers (number)")
    return connection


def insert(connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO numbers VALUES (1)")


def watch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "penstock-wal-watch"]


def test_a_commit_of_another_process_is_noticed(path, connection, watching, calls):
    watching(calls)
    subprocess.run([sys.executable, "-c", COMMIT, str(path)], check=True)
    calls.next()


def test_a_commit_of_another_connection_in_this_process_is_noticed(connection, watching, calls):
    watching(calls)
    insert(connection)
    calls.next()


def test_the_commit_is_visible_when_the_callback_runs(path, connection, watching):
    seen: SimpleQueue[int] = SimpleQueue()
    reader = apsw.Connection(str(path))
    watching(lambda: seen.put(reader.execute("SELECT count(*) FROM numbers").get))
    for expected in range(1, 20):
        insert(connection)
        while seen.get(timeout=PATIENCE) < expected:
            pass


def test_without_inotify_a_commit_is_noticed_by_polling(
    without_inotify, connection, watching, calls
):
    watching(calls)
    for _ in range(3):
        insert(connection)
        calls.next()


def test_a_watch_started_before_the_database_exists_notices_its_first_commit(path, watching, calls):
    watching(calls)
    connection = create(path)
    insert(connection)
    calls.next()
    connection.close()


def test_a_watch_started_while_there_is_no_wal_file_notices_commits(path, watching, calls):
    create(path).close()
    assert not path.with_name("work.db-wal").exists()
    watching(calls)
    connection = create(path)
    insert(connection)
    calls.next()
    connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_a_wal_file_that_is_deleted_and_made_again_is_still_heard(tmp_path):
    wal = tmp_path / "work.db-wal"
    wal.write_bytes(b"one")
    bell = wal_watch._InotifyBell(str(wal))
    try:
        for _ in range(3):
            wal.unlink()
            assert bell.wait(PATIENCE)
            wal.write_bytes(b"new")
            assert bell.wait(PATIENCE)
            while bell.wait(0):
                pass
            with wal.open("ab") as file:
                file.write(b"more")
            assert bell.wait(PATIENCE)
            while bell.wait(0):
                pass
    finally:
        bell.close()


def test_bursts_are_coalesced(connection, watching, calls):
    watching(calls)
    for _ in range(300):
        insert(connection)
    times = [calls.next(), *calls.waiting()]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(gap >= wal_watch._COALESCE_SECONDS for gap in gaps)


def test_the_watch_leaves_no_read_transaction_that_would_let_the_wal_grow(
    path, connection, watching, calls
):
    watching(calls)
    insert(connection)
    calls.next()
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert path.with_name("work.db-wal").stat().st_size == 0


def test_a_callback_that_fails_is_logged_once_and_the_watch_goes_on(
    connection, watching, calls, caplog
):
    def fail() -> None:
        calls()
        raise RuntimeError("no")

    with caplog.at_level(logging.WARNING):
        watch = watching(fail)
        for _ in range(3):
            insert(connection)
            calls.next()
        watch.stop()
    assert [record.message for record in caplog.records if "callback" in record.message] == [
        f"The callback of the WAL watch on {watch._path} failed."
    ]


def test_stop_may_be_called_twice_and_ends_the_thread(connection, watching, calls):
    watch = watching(calls)
    watch.stop()
    watch.stop()
    assert not watch_threads()


def test_stop_may_be_called_by_the_callback(connection, watching, calls):
    def stop() -> None:
        watch.stop()
        calls()

    watch = watching(stop)
    insert(connection)
    calls.next()
    watch.stop()
    assert not watch_threads()


def test_stop_without_start_starts_no_thread_and_calls_nothing(path, connection, calls):
    WalWatch(path, calls).stop()
    insert(connection)
    assert not watch_threads()
    assert list(calls.waiting()) == []


def test_starting_twice_starts_one_thread(connection, watching, calls):
    watching(calls).start()
    assert len(watch_threads()) == 1


def test_a_stopped_watch_holds_no_connection(path, connection, watching, calls):
    before = len(apsw.connections())
    watch = watching(calls)
    assert len(apsw.connections()) == before + 1
    watch.stop()
    assert len(apsw.connections()) == before
