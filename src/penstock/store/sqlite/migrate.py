"""Versioned migrations: forward only, all or nothing, under the file's own write lock."""

from functools import cache
from pathlib import Path

import apsw

from penstock.model.clock import Clock
from penstock.model.store_errors import NotAPenstockStore, SchemaTooNew
from penstock.store.relational.transaction import load_migrations

LOOK_MS = 30_000

_META = """
CREATE TABLE IF NOT EXISTS penstock_meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT
"""


@cache
def migrations() -> dict[int, str]:
    """Version to SQL."""
    return load_migrations("penstock.store.sqlite")


def latest() -> int:
    """The newest version this penstock knows."""
    return max(migrations())


def version(connection: apsw.Connection) -> int:
    """The schema version of a file; 0 when penstock has never been in it."""
    known = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'penstock_meta'"
    ).fetchone()
    if known is None:
        return 0
    row = connection.execute("SELECT value FROM penstock_meta WHERE name = 'schema'").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: apsw.Connection, path: str, clock: Clock) -> tuple[int, int]:
    """Bring a file up to date; the versions before and after."""
    # Under the lock, because another process may be making the tables right now.
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = check(connection, path)
        connection.execute(_META)
        for number, sql in migrations().items():
            if number > before:
                connection.execute(sql)
        _remember(connection, "schema", latest())
        _begin_boot(connection, clock)
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return before, latest()


def look_first(path: Path) -> int:
    """Refuse a file that is not ours before a connection changes even its journal mode.

    Return its schema version, which is 0 where penstock has never been.
    """
    if not path.exists() or path.stat().st_size == 0:
        return 0
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(LOOK_MS)
        # One snapshot: another process may be making the tables right now.
        connection.execute("BEGIN")
        return check(connection, str(path))
    finally:
        connection.close()


def check(connection: apsw.Connection, path: str) -> int:
    """Refuse a file from a newer penstock, or one whose tables would collide with ours."""
    found = version(connection)
    if found > latest():
        raise SchemaTooNew(path, found, latest())
    if found == 0:
        taken = connection.execute(
            "SELECT name FROM sqlite_schema WHERE name IN ('jobs', 'job_executions', 'workers')"
        ).fetchone()
        if taken is not None:
            raise NotAPenstockStore(path, f"a table {taken[0]!r} of its own")
    return found


def _begin_boot(connection: apsw.Connection, clock: Clock) -> None:
    """Monotonic times of an earlier boot mean nothing now: their leases have run out."""
    _remember(connection, "wall_minus_monotonic", clock.now() - clock.monotonic())
    row = connection.execute("SELECT value FROM penstock_meta WHERE name = 'boot'").fetchone()
    if row is None or row[0] != clock.boot_id:
        connection.execute("UPDATE jobs SET lease_until = -1 WHERE status = 'in_progress'")
        connection.execute("DELETE FROM leaders")
        _remember(connection, "boot", clock.boot_id)


def _remember(connection: apsw.Connection, name: str, value: str | int) -> None:
    connection.execute(
        "INSERT INTO penstock_meta VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
