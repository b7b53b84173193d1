"""Checking, one by one, what this store promises."""

from collections.abc import Iterator
from pathlib import Path

import apsw

from penstock.store.contract import Durability
from penstock.store.sqlite.connect import WAL_BYTES
from penstock.store.sqlite.files import rights
from penstock.store.sqlite.migrate import latest, version
from penstock.store.sqlite.refusals import foreign_handles
from penstock.store.sqlite.transaction import SqliteTransaction

PROMISE = (
    "SQLite with synchronous=FULL: nothing acknowledged is lost, by a crash of a process, "
    "of the machine, or of its power."
)


def inspect(tx: SqliteTransaction, path: Path | None) -> Durability:
    """Every check with its outcome and a word on it."""
    return Durability(PROMISE, list(_checks(tx, path)))


def _checks(tx: SqliteTransaction, path: Path | None) -> Iterator[tuple[str, bool, str]]:
    yield "sqlite", True, f"SQLite {apsw.sqlite_lib_version()} inside apsw {apsw.apsw_version()}"
    found = version(tx.connection)
    yield "schema", found == latest(), f"version {found}, this penstock knows {latest()}"
    mode = _pragma(tx, "journal_mode")
    yield "journal", path is None or mode == "wal", f"journal_mode is {mode}"
    problem = _pragma(tx, "integrity_check(1)")
    yield "integrity", problem == "ok", f"integrity_check says {problem}"
    yield from _file_checks(path)
    yield from _row_checks(tx)


def _file_checks(path: Path | None) -> Iterator[tuple[str, bool, str]]:
    if path is None:
        yield "file", False, "in memory: everything is lost when the process ends"
        return
    private, told = rights(path)
    yield "private", private, told
    wal = path.with_name(path.name + "-wal")
    size = wal.stat().st_size if wal.exists() else 0
    yield "wal", size < 2 * WAL_BYTES, f"the write-ahead log is {size / 1e6:.1f} MB"
    foreign = foreign_handles(path)
    yield (
        "one library",
        not foreign,
        "another SQLite library has the file open" if foreign else "only apsw has the file open",
    )


def _row_checks(tx: SqliteTransaction) -> Iterator[tuple[str, bool, str]]:
    unowned = tx.value("leases_without_owner")
    yield "leases", unowned == 0, f"{unowned} running jobs without an owner"
    stray = tx.value("keys_without_job")
    yield "keys", stray == 0, f"{stray} unique keys held by no waiting or running job"


def _pragma(tx: SqliteTransaction, name: str) -> str:
    return str(tx.connection.execute(f"PRAGMA {name}").get)
