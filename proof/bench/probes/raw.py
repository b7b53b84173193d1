"""Measuring the limit of the store."""

import time
from pathlib import Path

from proof.bench.limits.sqlite import (
    open_raw,
    raw_drain,
    raw_enqueue,
    raw_rows,
)
from proof.bench.workload import PAYLOAD

FILL_BATCH = 10_000


def fill(path: str, jobs: int, tenants: int = 0) -> None:
    """Put jobs into a file as fast as it takes them; not measured."""
    connection = open_raw(Path(path))
    names = [f"tenant-{number}" for number in range(tenants)] or [""]
    for start in range(0, jobs, FILL_BATCH):
        rows = raw_rows(min(FILL_BATCH, jobs - start), "noop", PAYLOAD, names)
        raw_enqueue(connection, rows, FILL_BATCH)
    connection.close()


def enqueue(path: str, jobs: int) -> float:
    """Rows per second."""
    connection = open_raw(Path(path))
    rows = raw_rows(jobs, "noop", PAYLOAD)
    began = time.perf_counter()
    raw_enqueue(connection, rows)
    taken = time.perf_counter() - began
    connection.close()
    return jobs / taken


def drain(path: str) -> float:
    """Rows claimed and completed per second."""
    connection = open_raw(Path(path))
    began = time.perf_counter()
    jobs = raw_drain(connection, "noop")
    taken = time.perf_counter() - began
    connection.close()
    return jobs / taken
