"""Fault 7: handlers that do not end when their time is up."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Penstock, Status, Worker
from tests.faults.support.facts import query
from tests.faults.support.jobs import held_in_process, overrunning, quick
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench, gone, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]

TIMEOUT_SECONDS = 0.3


@pytest.fixture
def stuck() -> Iterator[int]:
    """A pipe that nobody writes to before the end: a read from it waits in C."""
    reader, writer = os.pipe()
    yield reader
    os.write(writer, b"x")
    os.close(writer)


@pytest.mark.quick
async def test_a_thread_past_its_timeout_is_abandoned_and_counted_and_its_slot_freed(
    tmp_path: Path, stuck: int
) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/work.db")

    @app.job(timeout=TIMEOUT_SECONDS, max_retries=0)
    def sleepy() -> None:
        os.read(stuck, 1)

    @app.job
    def other() -> str:
        return "ran"

    async with app:
        worker = Worker(app, concurrency=1)
        running = asyncio.create_task(worker.run())
        await worker.started()
        late, next_one = await sleepy.enqueue(), await other.enqueue()
        assert await next_one.result(timeout=30) == "ran"
        assert worker._executor.threads.abandoned == 1
        job = await app.get(late.id)
        assert (job.status, job.attempts) == (Status.DEAD_LETTER, 1)
        assert job.error is not None
        assert "0.3 s" in job.error
        worker.stop()
        await running


@pytest.mark.quick
async def test_a_process_past_its_timeout_is_killed_and_its_worker_lives_on(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        warm_up = held_in_process.new(bench.where, bench.where)
        await store.jobs.enqueue([warm_up.job])
        with bench.worker(concurrency=1) as worker:
            wait_until(lambda: bench.counts() == {"completed": 1})
            await store.jobs.enqueue([overrunning.new(bench.where, bench.gate).job])
            _, began = wait_until(lambda: len(found := bench.effects("began")) == 2 and found)
            assert began.pid != worker.pid
            wait_until(lambda: gone(began.pid))
            await store.jobs.enqueue([quick.new(bench.where).job])
            wait_until(lambda: bench.counts() == {"dead_letter": 1, "completed": 2})
            assert worker.exit_code is None
    facts = "SELECT attempts, rescues, error FROM jobs WHERE type = 'overrunning'"
    ((attempts, rescues, error),) = query(bench.path, facts)
    assert (attempts, rescues) == (1, 0)
    assert "0.3 s" in error
