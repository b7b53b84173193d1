"""Faults 10 and 11: SIGTERM, once and twice."""

import signal
import threading
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.faults.support.facts import figure, integrity, query
from tests.faults.support.jobs import held, held_in_process, held_in_thread, quick
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench, gone, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

PREFETCHED = "SELECT id FROM jobs WHERE status = 'in_progress' AND started_at IS NULL"
LEASED = "SELECT count(*) FROM jobs WHERE status = 'in_progress'"
HELD_KINDS = (held, held_in_thread, held_in_process)


@pytest.mark.quick
async def test_one_sigterm_lets_running_jobs_finish_and_gives_prefetched_ones_back_untouched(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([quick.new(bench.where).job for _ in range(200)])
        with bench.worker(concurrency=4) as worker:
            wait_until(lambda: bench.counts() == {"completed": 200})
            running = [
                kind.options(priority=1).new(bench.where, bench.gate)
                for kind in (*HELD_KINDS, held)
            ]
            waiting = [quick.new(bench.where) for _ in range(20)]
            await store.jobs.enqueue([call.job for call in (*running, *waiting)])
            wait_until(lambda: len(bench.effects("began")) == 4)
            prefetched = {row[0] for row in wait_until(lambda: query(bench.path, PREFETCHED))}
            worker.signal(signal.SIGTERM)
            wait_until(lambda: not query(bench.path, PREFETCHED))
            bench.open_gate()
            assert worker.wait() == 0

    assert bench.counts() == {"completed": 204, "queued": 20}
    assert set(Counter(effect.job_id for effect in bench.effects()).values()) == {1}
    assert len(bench.effects()) == 204
    untouched = "SELECT id FROM jobs WHERE status = 'queued' AND attempts = 0 AND rescues = 0"
    assert prefetched <= {row[0] for row in query(bench.path, untouched)}
    assert bench.figure("SELECT count(*) FROM job_executions") == 204


async def test_sigterm_at_any_moment_leaves_no_lease_behind_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    bench, luck = Bench(tmp_path), Random(10)
    async with opened(bench.path) as store:
        total = 0
        for number in range(figure(short=2, full=200)):
            await store.jobs.enqueue([quick.new(bench.where).job for _ in range(1_000)])
            total += 1_000
            before = len(bench.effects())
            with bench.worker(concurrency=4, owner=f"drained:{number}") as worker:
                wait_until(lambda before=before: len(bench.effects()) > before)
                threading.Event().wait(luck.uniform(0, 0.15))
                worker.signal(signal.SIGTERM)
                assert worker.wait() == 0
            assert bench.figure(LEASED) == 0
    effects = Counter(effect.job_id for effect in bench.effects())
    assert set(effects.values()) == {1}
    assert bench.counts().get("completed") == len(effects)
    assert sum(bench.counts().values()) == total
    assert bench.figure("SELECT max(rescues) FROM jobs") == 0
    assert integrity(bench.path) == "ok"


@pytest.mark.parametrize("number", range(figure(short=1, full=50)))
@pytest.mark.quick
async def test_two_sigterms_free_every_lease_at_once_and_spend_no_attempt(
    number: int, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        calls = [kind.new(bench.where, bench.gate) for kind in HELD_KINDS for _ in range(4)]
        await store.jobs.enqueue([call.job for call in calls])
        with bench.worker(concurrency=len(calls)) as worker:
            # As many processes as there are cores run at once; the others wait for one.
            wait_until(lambda: len(bench.effects("began")) >= 9)
            processes = {e.pid for e in bench.effects("began")} - {worker.pid}
            worker.terminate_twice()
            # A drain would last 30 s, and the leases 60; how quick it is, a quiet machine shows.
            wait_until(lambda: bench.figure(LEASED) == 0, seconds=figure(short=20, full=2))
            assert worker.wait() == 0
            wait_until(lambda: all(map(gone, processes)))
    assert bench.counts() == {"queued": len(calls)}
    assert query(bench.path, "SELECT DISTINCT attempts, rescues FROM jobs") == [(0, 0)]
    assert {r[0] for r in query(bench.path, "SELECT status FROM job_executions")} == {"interrupted"}
    assert bench.effects() == []
