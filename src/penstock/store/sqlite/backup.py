"""Copying an installation while it runs, and putting a copy back in its place."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import (
    NotAPenstockStore,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from penstock.model.transfer import MOVE, MOVED_TO, MOVING_TO, refuse_half
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.files import BESIDE, keep_rights, put_in_place
from penstock.store.sqlite.migrate import check, version
from penstock.store.sqlite.refusals import check_path

PAGES_AT_ONCE = 1_000
_TAKEN = "it exists already; name a new file"


def copy_file(source: Path | None, target: Path) -> int:
    """Copy a live file to a new one and verify it; the number of jobs in the copy."""
    if source is None:
        raise InvalidOption("url", ":memory:", "a file; what is in memory cannot be copied")
    with new_file(target) as part, translated(str(target)):
        reader = connect(source, read_only=True)
        try:
            with closing(apsw.Connection(str(part))) as copy:
                _copy_pages(reader, copy)
        finally:
            reader.close()
        return seal(part, target)


def seal(part: Path, target: Path) -> int:
    """Make one file of a copy that is finished, and verify it; the number of jobs in it."""
    with translated(str(target)), closing(apsw.Connection(str(part))) as copy:
        copy.execute("PRAGMA journal_mode = DELETE")
        return verify(copy, str(target))


@contextmanager
def new_file(target: Path) -> Generator[Path, None, None]:
    """Give a file beside the target to fill; it gets its name when it is whole and on disk.

    Only its owner may read it, and nothing that has the name already is ever overwritten.
    """
    if target.exists():
        raise StoreUnavailable(str(target), _TAKEN)
    try:
        descriptor, made = tempfile.mkstemp(".part", f"{target.name}.", target.parent)
    except OSError as error:
        raise StoreUnavailable(str(target), error.strerror or str(error)) from error
    os.close(descriptor)
    part = Path(made)
    try:
        yield part
        _sync(part)
        put_in_place(part, target)
        _sync(target.parent)
    except FileExistsError:
        raise StoreUnavailable(str(target), _TAKEN) from None
    finally:
        for suffix in BESIDE:
            Path(f"{part}{suffix}").unlink(missing_ok=True)


def restore_file(copy: Path, target: Path | None) -> int:
    """Put a verified copy in place of a file nobody has open; the number of jobs in it."""
    if target is None:
        raise InvalidOption("url", ":memory:", "a file; memory is gone when this process ends")
    check_path(copy)
    with translated(str(copy)):
        source = apsw.Connection(str(copy), apsw.SQLITE_OPEN_READWRITE)
        try:
            verify(source, str(copy))
        finally:
            source.close()
    _refuse_if_open(target)
    folder = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent))
    try:
        fresh = folder / "fresh.db"
        jobs = copy_file(copy, fresh)
        with translated(str(fresh)):
            forget_the_day(fresh)
        if target.exists():
            keep_rights(target, fresh)
        # Again, because copying takes a while; and it leaves nothing in the log, which goes first.
        _refuse_if_open(target)
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        os.replace(fresh, target)
        _sync(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return jobs


def forget_the_day(path: Path) -> None:
    """Forget the workers and the leader of the day of the copy, and that it was moved away then."""
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("DELETE FROM workers; DELETE FROM leaders")
        for mark in (MOVE, MOVING_TO, MOVED_TO):
            connection.execute("DELETE FROM penstock_meta WHERE name = ?", (f"move.{mark}",))
    finally:
        connection.close()


def verify(connection: apsw.Connection, path: str) -> int:
    """Check every page and index of a file; the number of jobs in it."""
    problem = str(connection.execute("PRAGMA integrity_check(1)").get)
    if problem != "ok":
        raise StoreCorrupt(path, problem)
    check(connection, path)
    if version(connection) == 0:
        raise NotAPenstockStore(path, "no penstock tables")
    marks = connection.execute("SELECT name, value FROM penstock_meta WHERE name LIKE 'move.%'")
    refuse_half(path, {str(name).removeprefix("move."): str(value) for name, value in marks})
    return int(connection.execute("SELECT count(*) FROM jobs").get)


def _copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    # One snapshot throughout: without it every commit in between starts the copy over again.
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(PAGES_AT_ONCE)
    source.execute("COMMIT")


def _refuse_if_open(target: Path) -> None:
    """An exclusive lock is only to be had when no other connection is open."""
    if not target.exists():
        return
    check_path(target)
    with translated(str(target)):
        connection = apsw.Connection(str(target), apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except apsw.BusyError:
            raise StoreError(
                str(target), "is in use; stop the workers and all others that have it open first"
            ) from None
        finally:
            connection.close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
