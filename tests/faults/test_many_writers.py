"""Fault 27: eight writing processes, and one that checkpoints."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.support.children import Child
from tests.faults.support.facts import figure, integrity, query
from tests.faults.support.work import new_jobs, opened

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

WRITERS = 8
LARGEST_WAL = 64 * 1024 * 1024


@pytest.mark.quick
def test_eight_writers_and_a_checkpointer_never_see_a_lock_and_count_exactly(
    tmp_path: Path,
) -> None:
    path, rounds = tmp_path / "work.db", figure(short=20, full=1_000)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Child("contender", path, f"writer:{n}", rounds))
            for n in range(WRITERS)
        ]
        checkpointer = stack.enter_context(Child("checkpointer", path))
        assert {child.answer() for child in (*writers, checkpointer)} == {"ready"}
        for child in (*writers, checkpointer):  # all open the missing file at once
            child.tell()
        said = [writer.answer(600) for writer in writers]
        checkpointer.tell()
        checkpoints = checkpointer.answer()

    assert [error for what in said for error in what["errors"]] == []
    assert sum(what["stale"] for what in said) == 0
    counts = dict(query(path, "SELECT status, count(*) FROM jobs GROUP BY status"))
    assert sum(counts.values()) == sum(what["enqueued"] for what in said) == WRITERS * rounds * 4
    assert counts["completed"] == sum(what["completed"] for what in said)
    assert query(path, "SELECT count(*) FROM job_executions") == [(counts["completed"],)]
    assert counts.get("in_progress", 0) == 0
    assert checkpoints["passes"] > 0
    assert checkpoints["largest"] < LARGEST_WAL
    assert integrity(path) == "ok"


async def test_the_wal_stays_small_without_anybody_checkpointing_on_purpose(
    tmp_path: Path,
) -> None:
    path, payload = tmp_path / "work.db", '"' + "x" * 100_000 + '"'
    largest = written = 0
    async with opened(path) as store:
        while written < figure(short=100, full=1_000) * 1_000_000:
            await store.jobs.enqueue(new_jobs(20, payload=payload))
            written += 20 * len(payload)
            largest = max(largest, os.stat(f"{path}-wal").st_size)
    assert largest < LARGEST_WAL < written
