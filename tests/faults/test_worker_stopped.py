"""Fault 5: a worker process stopped past its leases, and going on."""

import json
import signal
from pathlib import Path

import pytest

from penstock.store.contract import Store
from tests.faults.support.facts import figure, integrity, query
from tests.faults.support.jobs import held
from tests.faults.support.waiting import rescued
from tests.faults.support.work import claim_of, completed, opened
from tests.faults.support.workers import Bench, WorkerProcess, freeze, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

LEASE_SECONDS = 1.0
AT_ONCE = 100


@pytest.mark.parametrize("number", range(figure(short=1, full=5)))
async def test_a_worker_stopped_past_its_leases_writes_nothing_under_them(
    number: int, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    settings = {"lease": LEASE_SECONDS, "renew_interval": LEASE_SECONDS / 3}
    async with opened(bench.path) as store:
        await store.jobs.enqueue([held.new(bench.where, bench.gate).job for _ in range(AT_ONCE)])
        with bench.worker(concurrency=AT_ONCE, settings=settings) as worker:
            wait_until(lambda: len(bench.effects("began")) == AT_ONCE)
            freeze(worker, bench.path)
            assert len(await rescued(store, AT_ONCE)) == AT_ONCE
            await finish_elsewhere(store)
            await go_on(bench, worker, {"lease_lost", "stale_settlement"})


@pytest.mark.parametrize("number", range(figure(short=1, full=5)))
async def test_a_worker_that_hears_of_its_lost_leases_only_when_it_settles_writes_nothing(
    number: int, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([held.new(bench.where, bench.gate).job for _ in range(AT_ONCE)])
        with bench.worker(concurrency=AT_ONCE, owner="frozen:1") as worker:
            wait_until(lambda: len(bench.effects("began")) == AT_ONCE)
            freeze(worker, bench.path)
            assert len(await store.upkeep.rescue(owner="frozen:1")) == AT_ONCE
            await finish_elsewhere(store)
            await go_on(bench, worker, {"stale_settlement"})


async def go_on(bench: Bench, worker: WorkerProcess, heard_of_it: set[str]) -> None:
    """Let the worker run again, until all its leases were refused, and nothing was written."""
    before = query(bench.path, "SELECT * FROM jobs ORDER BY id")
    bench.open_gate()
    worker.signal(signal.SIGCONT)
    wait_until(lambda: len(refused(bench, heard_of_it)) == AT_ONCE)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert query(bench.path, "SELECT * FROM jobs ORDER BY id") == before
    assert bench.counts() == {"completed": AT_ONCE}
    assert integrity(bench.path) == "ok"


async def finish_elsewhere(store: Store) -> None:
    claim = claim_of("other:1", AT_ONCE, types=("held",))
    leases = (await store.jobs.claim(claim)).leases
    assert len(leases) == AT_ONCE
    assert await store.jobs.settle("other:1", [completed(lease) for lease in leases]) == []


def refused(bench: Bench, events: set[str]) -> set[str]:
    """The jobs whose lease the worker found lost."""
    lines = [json.loads(line) for line in bench.log().splitlines() if line.startswith("{")]
    told = [line for line in lines if line["event"] in events]
    assert all(line.keys() >= {"job_type", "worker_id", "attempt", "duration_ms"} for line in told)
    return {line["job_id"] for line in told}
