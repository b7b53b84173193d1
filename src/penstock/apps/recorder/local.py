"""The recorder's own file, written without Penstock: what a hook does in its milliseconds.

It executes the statements of the store, the events and the recorder as they stand in their `.sql`
files, and only if the file is of the versions that those are written for. Where Penstock is loaded
anyway, `writing.py` does the same.
"""

from __future__ import annotations  # not evaluated: a hook need not load typing

import os
from zlib import compress

import apsw

from penstock.apps.recorder.captured import (
    QUEUE,
    QUEUE_LIMIT,
    VALIDATION,
    VALIDATION_PRIORITY,
    VALIDATION_RETRIES,
    Captured,
    message_rows,
    redaction_rows,
    twins,
    validation_key,
    written,
)
from penstock.apps.recorder.platforms import TYPES
from penstock.events.columns import EXTRACTED, ORDINARY, PRIORITIES, extracted, slot_of
from penstock.store.statements import named_pieces

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

BUSY_MS = 10
"""So long it waits for another commit to end, and no longer."""
WAL_PAGES = 200
"""Every process reads the whole log of a file that nobody else has open: it is kept short."""
SMALL = 600
"""Bodies of so many bytes stay as they are; a pass compresses all of them better later."""
TIMEOUT_MS = 300_000

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS = {
    "schema": os.path.join(PACKAGE, "store", "sqlite", "migrations"),
    "extension:events": os.path.join(PACKAGE, "events", "sql"),
    "extension:recorder": os.path.join(PACKAGE, "apps", "recorder", "sql"),
}
STATEMENTS = {
    "store/sqlite/sql/enqueue.sql": ("insert_job", "take_key"),
    "store/sqlite/sql/controls.sql": ("queue_depth",),
    "store/sqlite/sql/tables.sql": ("extension_version",),
    "events/sql/log.sql": ("append",),
    "apps/recorder/sql/messages.sql": ("captured_before", "add_message", "add_redaction"),
}


class CannotWrite(Exception):
    """The file cannot be written now, or not by this version."""


def statements() -> dict[str, str]:
    """The statements that are executed here, by name."""
    found: dict[str, str] = {}
    for path, wanted in STATEMENTS.items():
        with open(os.path.join(PACKAGE, path), encoding="utf-8") as file:
            pieces = named_pieces(file.read())
            found.update((name, sql) for kind, name, sql in pieces if kind == "name")
        for name in wanted:
            if "{" in found[name]:
                raise CannotWrite(f"{name} is not whole without another statement")
    return found


def versions() -> dict[str, int]:
    """The versions that the statements are written for: the last step of each line."""
    return {
        name: max(int(file[:4]) for file in os.listdir(folder) if file[:4].isdigit())
        for name, folder in STEPS.items()
    }


class LocalFile:
    """The file, open for one commit; it is never waited for."""

    def __init__(self, path: str, version: str, busy_ms: int = BUSY_MS) -> None:
        self._sanitised_by = version
        self._statements = statements()
        try:
            self._connection = apsw.Connection(path, apsw.SQLITE_OPEN_READWRITE)
            self._connection.set_busy_timeout(busy_ms)
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
            self._connection.execute("PRAGMA secure_delete = ON")
        except apsw.Error as error:
            raise CannotWrite(str(error)) from error

    def write(self, captured: Iterable[Captured], now: int) -> None:
        """Write events with their messages and jobs in one commit, or CannotWrite."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._check()
            for one in captured:
                self._write(one, now)
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            raise CannotWrite(str(error)) from error
        finally:
            # A full disk may have ended it.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Let it go. A process that ends anyway saves the time: nothing is lost without it."""
        self._connection.close()

    def _check(self) -> None:
        """Refuse a file of other versions, and one whose queue is full."""
        for name, version in versions().items():
            found = self._run("extension_version", (name,)).fetchone()
            if found is None or found[0] != version:
                raise CannotWrite(f"{name} is at {found and found[0]}, and {version} here")
        (depth,) = self._run("queue_depth", (QUEUE, QUEUE_LIMIT)).fetchone() or (0,)
        if depth >= QUEUE_LIMIT:
            raise CannotWrite(f"{depth} jobs wait")

    def _run(self, name: str, bindings: Any) -> apsw.Cursor:
        return self._connection.execute(self._statements[name], bindings)

    def _write(self, captured: Captured, now: int) -> None:
        if self._run("captured_before", twins(captured)).fetchone() is not None:
            return
        self._run("append", self._in_order("append", event_row(captured, now)))
        for row in message_rows(captured):
            self._run("add_message", row)
            if self._connection.changes():
                self._enqueue(row, now)
        for redaction in redaction_rows(captured):
            self._run("add_redaction", redaction)

    def _enqueue(self, message: Mapping[str, Any], now: int) -> None:
        """Have a message validated."""
        job = job_row(message, self._sanitised_by, now)
        holder = self._run("take_key", {**job, "job_id": job["id"], "now": now}).fetchone()
        if holder == (job["id"],):
            self._run("insert_job", self._in_order("insert_job", job))

    def _in_order(self, name: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """What a statement takes, in the order in which it names its columns."""
        sql = self._statements[name]
        columns = sql[sql.index("(") + 1 : sql.index(")")].split(",")
        return tuple(row.get(column.strip()) for column in columns)


def event_row(captured: Captured, now: int) -> dict[str, Any]:
    """A row of the log, by column."""
    metadata = {"source": captured.source, **captured.metadata}
    body = written(
        {"payload": captured.payload, "metadata": metadata, "hook_type": captured.hook_type}
    ).encode()
    small = len(body) < SMALL
    whose = captured.tenant_id, captured.platform, captured.session_id
    return {
        **dict(zip(EXTRACTED, extracted(captured.payload, metadata), strict=True)),
        "event_id": captured.event_id,
        "timestamp": captured.timestamp,
        "ingested_at": now,
        "event_type": captured.event_type,
        "session_id": captured.session_id,
        "platform": captured.platform,
        "tenant_id": captured.tenant_id,
        "person": captured.person,
        "slot": slot_of(*whose),
        "priority": {**PRIORITIES, **TYPES}.get(captured.event_type, ORDINARY),
        "codec": "raw" if small else "zlib",
        "event_data": body if small else compress(body, 1),
    }


def job_row(message: Mapping[str, Any], version: str, now: int) -> dict[str, Any]:
    """A row of the job that validates a message, by column; what is not named is empty."""
    payload = {
        "conversation_id": message["conversation_id"],
        "message_ids": [message["id"]],
        "sanitization_version": version,
    }
    return {
        "id": _ulid(now),
        "type": VALIDATION,
        "queue": QUEUE,
        "tenant_id": message["tenant_id"],
        "status": "queued",
        "rank": now,  # the most urgent: there is nothing to add
        "priority": VALIDATION_PRIORITY,
        "max_retries": VALIDATION_RETRIES,
        "timeout_ms": TIMEOUT_MS,
        "scheduled_at": now,
        "created_at": now,
        "updated_at": now,
        "queued_at": now,
        "waiting_on": 0,
        "expires_at": None,
        "category": "general",
        "key": validation_key(message["id"]),
        "key_scope": "while_pending",
        "scope": "while_pending",
        "limit_key": "",
        "payload": written(payload),
    }


_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _ulid(now: int) -> str:
    number = now << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))
