"""A copy is made while the store runs, verified, and put back only where nobody works."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from penstock.model.errors import InvalidOption
from penstock.model.job import Job, NewJob
from penstock.model.store_errors import (
    NotAPenstockStore,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from penstock.operate.backup import backup
from penstock.store.contract import JobFilter, Store
from penstock.store.open import open_store
from penstock.store.sqlite import backup as copying
from penstock.store.sqlite.backup import restore_file as restore
from penstock.store.sqlite.connect import connect

HOLD_OPEN = """
import asyncio, sys
from penstock.store.open import open_store
store = open_store(sys.argv[1])
asyncio.run(store.open())
print("open", flush=True)
sys.stdin.readline()
asyncio.run(store.close())
"""

KILLED_AT_EVERY_STEP = """
import os, shutil, sys
from itertools import count
from pathlib import Path
from penstock.store.sqlite import backup
from penstock.store.sqlite.connect import connect

crashed, copy, folder = map(Path, sys.argv[1:])
steps_of = {backup.restore_file.__code__, backup._refuse_if_open.__code__}

def kill_at(step):
    steps = count(1)
    def each(frame, event, arg):
        if event == "line" and next(steps) == step:
            os._exit(9)
        return each
    sys.settrace(lambda frame, event, arg: each if frame.f_code in steps_of else None)

def jobs_in(target):
    connection = connect(target)
    try:
        assert connection.execute("PRAGMA integrity_check(1)").get == "ok"
        return connection.execute("SELECT count(*) FROM jobs").get
    finally:
        connection.close()

for step in range(1, 200):
    target = folder / str(step) / "work.db"
    shutil.copytree(crashed, target.parent)
    child = os.fork()
    if not child:
        kill_at(step)
        backup.restore_file(copy, target)
        os._exit(0)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    print(killed, jobs_in(target), backup.restore_file(copy, target))
    shutil.rmtree(target.parent)
    if not killed:
        break
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.jobs.enqueue([NewJob(id=f"{n:03d}", type="mail", key=f"{n}") for n in range(100)])
    yield store
    await store.close()


async def _jobs(store: Store) -> list[Job]:
    return await store.reader.find(JobFilter(limit=1_000))


async def _jobs_in(path: Path) -> list[Job]:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    try:
        return await _jobs(store)
    finally:
        await store.close()


async def test_a_copy_restored_elsewhere_holds_the_same_jobs(store: Store, tmp_path: Path) -> None:
    copy, target = tmp_path / "copy.db", tmp_path / "restored.db"
    assert await backup(store, copy) == 100
    assert await asyncio.to_thread(restore, copy, target) == 100
    assert await _jobs_in(target) == await _jobs(store)
    assert not any(file.suffix in (".part", ".restoring") for file in _listing(tmp_path))


async def test_a_restore_replaces_what_was_there_its_write_ahead_log_included(
    store: Store, path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    await backup(store, copy)
    kept = await _jobs(store)
    await store.jobs.enqueue([NewJob(id="later", type="mail")])
    await store.close()
    await asyncio.to_thread(restore, copy, path)
    await store.open()
    assert await _jobs(store) == kept


class OnePage:
    """How much to copy at once: one page, and somebody commits before each."""

    def __init__(self, other: apsw.Connection) -> None:
        self._other = other
        self.steps = 0

    def __index__(self) -> int:
        self.steps += 1
        assert self.steps < 1_000, "the copy starts over and over again"
        self._other.execute("REPLACE INTO penstock_meta VALUES ('steps', ?)", (self.steps,))
        return 1


async def test_a_copy_is_finished_although_another_connection_commits_all_the_time(
    store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(connect(path)) as other:
        one_page = OnePage(other)
        monkeypatch.setattr(copying, "PAGES_AT_ONCE", one_page)
        assert await backup(store, tmp_path / "copy.db") == 100
    assert one_page.steps > 10


async def test_the_store_goes_on_while_it_is_copied(store: Store, tmp_path: Path) -> None:
    copying_it = asyncio.create_task(backup(store, tmp_path / "copy.db"))
    await store.jobs.enqueue([NewJob(id="meanwhile", type="mail")])
    assert await copying_it in (100, 101)
    assert len(await _jobs(store)) == 101


async def test_a_file_that_exists_is_never_overwritten_by_a_backup(
    store: Store, tmp_path: Path
) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    with pytest.raises(StoreUnavailable, match="exists"):
        await backup(store, target)
    assert target.read_text() == "precious"


async def test_a_backup_that_fails_leaves_no_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: apsw.Connection, path: str) -> int:
        raise StoreCorrupt(path, "a test says so")

    monkeypatch.setattr(copying, "verify", fail)
    before = _listing(tmp_path)
    with pytest.raises(StoreCorrupt):
        await backup(store, tmp_path / "copy.db")
    assert _listing(tmp_path) == before


async def test_a_store_in_memory_says_that_it_cannot_be_copied(tmp_path: Path) -> None:
    store = open_store("sqlite:///:memory:")
    await store.open()
    with pytest.raises(InvalidOption):
        await backup(store, tmp_path / "copy.db")
    await store.close()
    assert _listing(tmp_path) == set()


async def test_a_file_that_this_process_has_open_is_not_replaced(
    store: Store, path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    await backup(store, copy)
    with pytest.raises(StoreError, match="in use"):
        await asyncio.to_thread(restore, copy, path)
    await store.jobs.enqueue([NewJob(id="still works", type="mail")])
    assert len(await _jobs(store)) == 101


async def test_a_file_that_another_process_has_open_is_not_replaced(
    store: Store, path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    await backup(store, copy)
    await store.close()
    holder = _opened_elsewhere(path)
    with pytest.raises(StoreError, match="in use"):
        restore(copy, path)
    holder.communicate("\n", timeout=30)
    assert restore(copy, path) == 100


async def test_a_file_that_is_opened_while_the_copy_is_made_is_not_replaced(
    store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    await backup(store, copy)
    await store.close()
    before = _listing(tmp_path)

    def copy_slowly(source: Path | None, target: Path) -> int:
        connection = connect(path)
        connections.append(connection)
        connection.execute("DELETE FROM jobs WHERE id = '000'")
        return copy_file(source, target)

    connections: list[apsw.Connection] = []
    copy_file = copying.copy_file
    monkeypatch.setattr(copying, "copy_file", copy_slowly)
    with pytest.raises(StoreError, match="in use"):
        restore(copy, path)
    connections[0].close()
    assert _listing(tmp_path) == before
    assert len(await _jobs_in(path)) == 99


async def test_a_corrupt_copy_is_refused_and_the_target_left_alone(
    store: Store, path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    await backup(store, copy)
    await store.close()
    broken = bytearray(copy.read_bytes())
    root = _root_page(copy, "jobs_queued")
    broken[(root - 1) * 4096 : root * 4096] = b"\x5a" * 4096
    copy.write_bytes(broken)
    before = _content(path)
    with pytest.raises(StoreCorrupt):
        restore(copy, path)
    assert _content(path) == before


async def test_a_truncated_copy_is_refused(store: Store, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backup(store, copy)
    await store.close()
    copy.write_bytes(copy.read_bytes()[:-4096])
    with pytest.raises(StoreError):
        restore(copy, path)
    assert len(await _jobs_in(path)) == 100


def test_a_file_that_is_no_penstock_store_is_not_restored(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(apsw.Connection(str(other))) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    with pytest.raises(NotAPenstockStore):
        restore(other, path)
    assert not path.exists()


def _listing(folder: Path) -> set[Path]:
    return set(folder.iterdir())


def _content(path: Path) -> bytes:
    return path.read_bytes()


def _opened_elsewhere(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD_OPEN, f"sqlite:///{path}"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    return holder


def _root_page(path: Path, name: str) -> int:
    with closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        assert connection.execute("PRAGMA page_size").get == 4096
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
        return int(found.get)


@pytest.mark.thorough
async def test_a_restore_that_is_killed_at_any_step_leaves_one_or_the_other_whole(
    store: Store, path: Path, tmp_path: Path
) -> None:
    copy, crashed, folder = (tmp_path / name for name in ("copy.db", "crashed", "killed"))
    await backup(store, copy)
    await store.jobs.enqueue([NewJob(id="later", type="mail")])
    for each in (crashed, folder):
        each.mkdir()
    for suffix in ("", "-wal"):  # the newest job is only in the log, as after a power cut
        shutil.copy(f"{path}{suffix}", crashed / f"work.db{suffix}")
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, crashed, copy, folder]
    found = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 0, found.stderr
    *killed, whole = [line.split() for line in found.stdout.splitlines()]
    assert whole == ["False", "100", "100"]
    before = [["True", "101", "100"]] * [line[1] for line in killed].count("101")
    assert killed == before + [["True", "100", "100"]] * (len(killed) - len(before))
    assert 20 < len(before) < len(killed)
