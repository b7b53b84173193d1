"""What one client can enqueue into PostgreSQL, and claim and complete, in batches of 100."""

import time
from datetime import UTC, datetime
from functools import cache
from typing import Any

import psycopg

from penstock.model.clock import SystemClock
from penstock.model.ids import new_ids
from penstock.model.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    DEFAULT_TIMEOUT_MS,
    rank,
)
from penstock.store.relational.transaction import load_queries
from proof.bench.workload import PAYLOAD

BATCH = 100
OWNER = "raw:limit"
TYPE = "noop"


def enqueue(url: str, jobs: int) -> float:
    """Rows per second; the rows are built before the clock starts."""
    with _open(url) as connection:
        connection.execute(_queries()["make_tables"])
        blocks = _blocks(jobs)
        began = time.perf_counter()
        for block in blocks:
            with connection.cursor() as cursor, cursor.copy(_queries()["enqueue"]) as copy:
                copy.write(block)
        return jobs / (time.perf_counter() - began)


def drain(url: str) -> float:
    """Rows claimed and completed per second."""
    with _open(url) as connection, connection.cursor(binary=True) as cursor:
        total = 0
        claimed: list[tuple[Any, ...]] = []
        began = time.perf_counter()
        while True:
            terms = {
                "ids": [row[0] for row in claimed],
                "fences": [row[1] for row in claimed],
                "owner": OWNER,
                "queue": DEFAULT_QUEUE,
                "type": TYPE,
                "batch": BATCH,
            }
            claimed = cursor.execute(_queries()["turn"], terms, prepare=True).fetchall()
            if not claimed:
                return total / (time.perf_counter() - began)
            total += len(claimed)


def _blocks(jobs: int) -> list[bytes]:
    now = SystemClock().now()
    at = datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds")
    numbers = (rank(now, DEFAULT_PRIORITY), DEFAULT_PRIORITY, r"\N")
    rest = (TYPE, DEFAULT_QUEUE, "queued", *numbers, DEFAULT_TIMEOUT_MS, at, at, at, at, PAYLOAD)
    tail = "\t".join(str(value) for value in rest)
    lines = [f"{job_id}\t{tail}\n" for job_id in new_ids(jobs)]
    return ["".join(lines[start : start + BATCH]).encode() for start in range(0, jobs, BATCH)]


def _open(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(url, autocommit=True)


@cache
def _queries() -> dict[str, bytes]:
    # psycopg takes a literal or bytes; these come from a file of this package.
    found = load_queries("proof.bench.limits")
    return {name: sql.encode() for name, sql in found.items()}
