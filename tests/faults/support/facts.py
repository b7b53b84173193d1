"""What a store's file says, read past the store."""

import hashlib
import os
from pathlib import Path

import apsw

TORTURE = os.environ.get("PENSTOCK_TORTURE") == "1"

TABLES = (
    "jobs",
    "job_executions",
    "job_keys",
    "job_logs",
    "dead_letter_jobs",
    "metrics",
    "leaders",
)


def figure(short: int, full: int) -> int:
    """A figure of this run: the short one, or the full one under PENSTOCK_TORTURE=1."""
    return full if TORTURE else short


def query(path: Path, sql: str, *bindings: object) -> list[tuple]:  # type: ignore[type-arg]
    """The rows of one statement, on a connection of its own."""
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(10_000)
        return connection.execute(sql, bindings).fetchall()
    finally:
        connection.close()


def integrity(path: Path) -> str:
    """`ok`, or what SQLite found wrong with the file."""
    return str(query(path, "PRAGMA integrity_check")[0][0])


def job_ids(path: Path) -> set[str]:
    """Every job the file holds."""
    return {row[0] for row in query(path, "SELECT id FROM jobs")}


def digest(path: Path) -> str:
    """One short name for all that the tables hold."""
    connection = apsw.Connection(str(path))
    try:
        connection.execute("BEGIN")
        rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]
    finally:
        connection.close()
    return hashlib.sha256(repr(rows).encode()).hexdigest()
