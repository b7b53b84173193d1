"""Space at the end of the log: commits find it there, and SQLite reads nothing into it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from penstock.store.sqlite import wal_space
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.transaction import SqliteTransaction
from penstock.store.sqlite.wal_space import WalSpace
from penstock.store.sqlite.writer import Writer
from penstock.testing.clock import FakeClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    connection = connect(path)
    connection.execute("CREATE TABLE notes (text TEXT NOT NULL)")
    writer = Writer(str(path), connection, FakeClock(), lambda: None)
    yield writer
    writer.close()


def write(writer: Writer, text: str, *, brief: bool = True) -> None:
    def operation(tx: SqliteTransaction) -> None:
        tx.connection.execute("INSERT INTO notes VALUES (?)", (text,))

    writer.call(operation, brief=brief)


def wal_bytes(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def notes(path: Path) -> list[str]:
    reader = connect(path)
    try:
        assert reader.pragma("integrity_check") == "ok"
        return [str(row[0]) for row in reader.execute("SELECT text FROM notes ORDER BY rowid")]
    finally:
        reader.close()


def test_lone_commits_find_space_in_the_log(writer: Writer, path: Path) -> None:
    write(writer, "first")
    before = wal_bytes(path)
    for n in range(wal_space.AHEAD // 2):
        write(writer, f"{n}")
    assert wal_bytes(path) == before


def test_space_is_made_again_and_again(writer: Writer, path: Path) -> None:
    used = 0
    for n in range(5 * wal_space.AHEAD):
        write(writer, f"{n}")
        used = wal_space.HEADER_BYTES + writer._wal_pages * (4096 + wal_space.FRAME_BYTES)
        assert wal_bytes(path) > used
    assert wal_bytes(path) < used + 2 * wal_space.AHEAD * (4096 + wal_space.FRAME_BYTES)


def test_a_long_transaction_is_given_no_space(writer: Writer, path: Path) -> None:
    write(writer, "much", brief=False)
    used = wal_space.HEADER_BYTES + writer._wal_pages * (4096 + wal_space.FRAME_BYTES)
    assert wal_bytes(path) == used


def test_what_a_crash_leaves_is_read_up_to_the_space(
    writer: Writer, path: Path, tmp_path: Path
) -> None:
    """Without the index beside it, SQLite has to find the end of the log by itself."""
    for n in range(40):
        write(writer, f"{n}")
        if n % 7 == 0:
            copy = tmp_path / f"after {n}.db"
            shutil.copy(path, copy)
            shutil.copy(f"{path}-wal", f"{copy}-wal")
            assert notes(copy) == [f"{each}" for each in range(n + 1)]


def test_space_in_a_log_without_a_frame_is_an_empty_log(path: Path) -> None:
    connect(path).execute("CREATE TABLE notes (text TEXT NOT NULL)")
    keeper = connect(path)
    keeper.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert wal_bytes(path) == 0
    keeper.execute("BEGIN IMMEDIATE")
    space = WalSpace(str(path), 4096)
    space.provide(0)
    space.close()
    keeper.execute("ROLLBACK")
    assert wal_bytes(path) > 0
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    keeper.close()
    assert notes(copy) == []


def test_what_another_connection_wrote_meanwhile_stays(writer: Writer, path: Path) -> None:
    write(writer, "here")
    other = connect(path)
    for n in range(3 * wal_space.AHEAD):
        other.execute("INSERT INTO notes VALUES (?)", (f"there {n}",))
    write(writer, "here again")
    other.close()
    there = [f"there {n}" for n in range(3 * wal_space.AHEAD)]
    assert notes(path) == ["here", *there, "here again"]


def test_a_log_that_cannot_be_opened_gets_no_space(tmp_path: Path) -> None:
    space = WalSpace(str(tmp_path / "missing.db"), 4096)
    space.provide(0)
    space.close()
    assert list(tmp_path.iterdir()) == []
