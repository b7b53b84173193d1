"""Copying an installation while it runs, and putting a copy back in its place."""

import os
from pathlib import Path

import apsw

from penstock.model.errors import (
    InvalidOption,
    NotAPenstockStore,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.migrate import check, version
from penstock.store.sqlite.refusals import check_path

PAGES_AT_ONCE = 1_000


def backup(source: Path | None, target: Path) -> int:
    """Copy a live file to a new one and verify it; the number of jobs in the copy."""
    if source is None:
        raise InvalidOption("url", ":memory:", "a file; what is in memory cannot be copied")
    if target.exists():
        raise StoreUnavailable(str(target), "it exists already; name a new file")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with translated(str(target)):
            reader = connect(source, read_only=True)
            copy = apsw.Connection(str(part))
            try:
                _copy_pages(reader, copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                jobs = verify(copy, str(target))
            finally:
                copy.close()
                reader.close()
        _sync(part)
        os.replace(part, target)
        _sync(target.parent)
    finally:
        part.unlink(missing_ok=True)
    return jobs


def restore(copy: Path, target: Path) -> int:
    """Put a verified copy in place of a file nobody has open; the number of jobs in it."""
    check_path(copy)
    with translated(str(copy)):
        source = apsw.Connection(str(copy), apsw.SQLITE_OPEN_READWRITE)
        try:
            verify(source, str(copy))
        finally:
            source.close()
    _refuse_if_open(target)
    fresh = target.with_name(target.name + ".restoring")
    fresh.unlink(missing_ok=True)
    jobs = backup(copy, fresh)
    with translated(str(fresh)):
        _forget_processes(fresh)
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    os.replace(fresh, target)
    _sync(target.parent)
    return jobs


def _forget_processes(path: Path) -> None:
    """The workers and the leader of the day of the copy are not those of today."""
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("DELETE FROM workers; DELETE FROM leaders")
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
