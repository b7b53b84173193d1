"""Faults 8 and 9: jobs that take their process down, and what becomes of the others."""

import signal
from pathlib import Path

import pytest

from tests.faults.support.facts import integrity, query
from tests.faults.support.jobs import greedy, held, killed_for_memory, poison, quick
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]

MAX_STARTS = 3
PREFETCHED = "SELECT count(*) FROM jobs WHERE status = 'in_progress' AND started_at IS NULL"


async def test_a_job_that_segfaults_ends_as_a_dead_letter_and_its_siblings_with_one_attempt(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        warm_up = [quick.new(bench.where).job for _ in range(200)]  # so that it prefetches
        await store.jobs.enqueue(warm_up)
        with bench.supervisor(concurrency=4) as supervisor:
            wait_until(lambda: bench.counts() == {"completed": 200})
            running = [held.options(priority=1).new(bench.where, bench.gate) for _ in range(3)]
            bad = poison.new(bench.where, f"{bench.gate}-of-poison")
            waiting = [quick.new(bench.where) for _ in range(20)]
            await store.jobs.enqueue([call.job for call in (*running, bad, *waiting)])
            wait_until(lambda: len(bench.effects("began")) == 4)
            innocent = wait_until(lambda: bench.figure(PREFETCHED))
            bench.open_gate("-of-poison")
            wait_until(lambda: len(starts_of(bench, bad.job.id)) > 1)
            bench.open_gate()
            wait_until(lambda: bench.counts() == {"completed": 223, "dead_letter": 1})
            supervisor.signal(signal.SIGTERM)
            assert supervisor.wait() == 0

    assert innocent > 0
    starts = starts_of(bench, bad.job.id)
    assert 1 < len(starts) <= MAX_STARTS
    assert len(set(starts)) == len(starts)
    siblings = "SELECT DISTINCT status, attempts FROM jobs WHERE type != 'poison'"
    assert query(bench.path, siblings) == [("completed", 1)]
    never_started = "SELECT max(rescues) FROM jobs WHERE type = 'quick'"
    assert bench.figure(never_started) == 0
    dead = "SELECT job_id, reason, rescues FROM dead_letter_jobs"
    assert query(bench.path, dead) == [(bad.job.id, "poison", MAX_STARTS)]
    assert integrity(bench.path) == "ok"


@pytest.mark.quick
async def test_a_job_killed_for_its_memory_ends_as_a_dead_letter_and_leaves_its_worker_alone(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([killed_for_memory.new(bench.where).job])
        await store.jobs.enqueue([quick.new(bench.where).job for _ in range(20)])
        with bench.worker(concurrency=4) as worker:
            wait_until(lambda: bench.counts() == {"completed": 20, "dead_letter": 1})
            assert worker.exit_code is None
    assert len(bench.effects("began")) == MAX_STARTS
    assert query(bench.path, "SELECT reason, rescues FROM dead_letter_jobs") == [("poison", 3)]
    others = "SELECT DISTINCT attempts, rescues FROM jobs WHERE type = 'quick'"
    assert query(bench.path, others) == [(1, 0)]


async def test_a_job_that_gets_no_memory_fails_as_any_other_and_spends_its_attempts(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([greedy.new(bench.where).job])
        with bench.worker(concurrency=1) as worker:
            wait_until(lambda: bench.counts() == {"dead_letter": 1})
            assert worker.exit_code is None
    facts = "SELECT reason, attempts, rescues, error_code FROM dead_letter_jobs"
    assert query(bench.path, facts) == [("temporary_resource", 3, 0, "MemoryError")]
    assert len(bench.effects("began")) == 3


def starts_of(bench: Bench, job_id: str) -> list[int]:
    """The processes a job was started in."""
    return [effect.pid for effect in bench.effects("began") if effect.job_id == job_id]
