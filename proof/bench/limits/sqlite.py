"""The limit of the file: the rows of penstock, moved by bare statements without an engine.

`make bench` measures the engine against these. They write the same columns under the same
indexes and wait for the disk as often, but check nothing, wake nobody and count nothing.
"""

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from penstock.model.clock import SystemClock
from penstock.model.ids import new_ids
from penstock.model.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    DEFAULT_TIMEOUT_MS,
    rank,
)
from penstock.store.sqlite.connect import connect
from penstock.store.sqlite.migrate import migrate

BATCH = 100
LEASE_MS = 60_000
OWNER = "raw:limit"

Row = tuple[Any, ...]

_INSERT = """
INSERT INTO jobs (
    id, type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms, scheduled_at,
    created_at, updated_at, queued_at, expires_at, retry_delay_ms, backoff_multiplier, category,
    workspace_id, created_by, parent_job_id, schedule_id, key, key_scope, limit_key, order_key,
    tags, metadata, trace_context, payload
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_CLAIM = """
UPDATE jobs
SET status = 'in_progress', fence = fence + 1, lease_owner = ?, lease_until = ?, updated_at = ?,
    started_at = ?
WHERE seq IN (
    SELECT seq FROM jobs WHERE status = 'queued' AND queue = ? AND tenant_id = '' AND type = ?
      AND limit_key = '' ORDER BY rank LIMIT ?
)
RETURNING id, fence, payload, type, queue, priority, attempts, snoozes, rescues, max_retries,
    retry_delay_ms, backoff_multiplier, timeout_ms, expires_at, checkpoint, tenant_id,
    workspace_id, parent_job_id, key, metadata, trace_context, created_at, queued_at, started_at
"""

_COMPLETE = """
UPDATE jobs
SET status = 'completed', attempts = attempts + 1, result = ?, started_at = ?, completed_at = ?,
    updated_at = ?, lease_owner = NULL, lease_until = NULL
WHERE id = ? AND fence = ? AND lease_owner = ? AND status = 'in_progress'
"""

_EXECUTION = """
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, worker, result
) VALUES (?, ?, 'completed', ?, ?, ?, ?, ?, ?)
"""


def open_raw(path: Path) -> apsw.Connection:
    """A connection like the store's own, to a file with the store's schema."""
    connection = connect(path)
    migrate(connection, str(path), SystemClock())
    return connection


def raw_rows(count: int, type_: str, payload: str, tenants: Sequence[str] = ("",)) -> list[Row]:
    """The rows that enqueueing this call of a job type `count` times would write."""
    now = SystemClock().now()
    order = rank(now, DEFAULT_PRIORITY)
    head = ("queued", order, DEFAULT_PRIORITY, None)
    times = (DEFAULT_TIMEOUT_MS, now, now, now, now, None, None, None, "general")
    rest = (*(None,) * 6, "", *(None,) * 4)
    return [
        (
            job_id,
            *(type_, DEFAULT_QUEUE, tenants[place % len(tenants)]),
            *head,
            *times,
            *rest,
            payload,
        )
        for place, job_id in enumerate(new_ids(count))
    ]


def raw_enqueue(connection: apsw.Connection, rows: Sequence[Row], batch: int = BATCH) -> None:
    """Insert rows, one transaction per batch."""
    waiting = iter(rows)
    while group := list(islice(waiting, batch)):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, group)
        connection.execute("COMMIT")


def raw_drain(connection: apsw.Connection, type_: str, batch: int = BATCH) -> int:
    """Claim and complete every queued job; a transaction completes a batch and claims the next."""
    clock = SystemClock()
    leased: list[Row] = []
    total = 0
    while True:
        connection.execute("BEGIN IMMEDIATE")
        now = clock.now()
        _settle(connection, leased, now)
        leased = connection.execute(
            _CLAIM, (OWNER, clock.monotonic() + LEASE_MS, now, now, DEFAULT_QUEUE, type_, batch)
        ).fetchall()
        connection.execute("COMMIT")
        if not leased:
            return total
        total += len(leased)


def raw_singles(connection: apsw.Connection, rows: Sequence[Row]) -> list[float]:
    """The seconds that each insert takes in a transaction of its own."""
    taken = []
    for row in rows:
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_INSERT, row)
        connection.execute("COMMIT")
        taken.append(time.perf_counter() - began)
    return taken


def _settle(connection: apsw.Connection, leased: list[Row], now: int) -> None:
    if not leased:
        return
    ends = [("null", row[-1], now, now, row[0], row[1], OWNER) for row in leased]
    connection.executemany(_COMPLETE, ends)
    executions = [
        (row[0], row[1], row[-1], now, row[-1] - row[-2], now - row[-1], OWNER, "null")
        for row in leased
    ]
    connection.executemany(_EXECUTION, executions)
