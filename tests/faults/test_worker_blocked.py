"""Fault 6: a handler that blocks the event loop."""

import asyncio
import time
from pathlib import Path

import pytest

from penstock.store.contract import Rescued, Store
from tests.faults.support.facts import integrity, query
from tests.faults.support.jobs import blocking, quick
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]

LEASE_SECONDS = 1.0
SETTINGS = {"lease": LEASE_SECONDS, "renew_interval": LEASE_SECONDS / 5}


@pytest.mark.quick
async def test_a_handler_that_blocks_the_loop_for_two_leases_keeps_its_lease(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([blocking.new(bench.where, 2 * LEASE_SECONDS).job])
        with bench.worker(settings=SETTINGS):
            assert await rescue_until_done(store, bench, 1) == []
    assert len(bench.effects()) == 1
    assert query(bench.path, "SELECT attempts, rescues, fence FROM jobs") == [(1, 0, 1)]
    assert query(bench.path, "SELECT status FROM job_executions") == [("completed",)]


async def test_jobs_around_a_handler_that_blocks_the_loop_keep_their_leases_too(
    tmp_path: Path,
) -> None:
    """Those that run, those that wait, those just claimed, and those ended but not yet settled."""
    bench, count = Bench(tmp_path), 40
    async with opened(bench.path) as store:
        for _ in range(count):
            await store.jobs.enqueue([quick.new(bench.where).job])
        await store.jobs.enqueue([blocking.new(bench.where, 2 * LEASE_SECONDS).job])
        for _ in range(count):
            await store.jobs.enqueue([quick.new(bench.where).job])
        with bench.worker(concurrency=4, settings=SETTINGS):
            assert await rescue_until_done(store, bench, 2 * count + 1) == []
    assert len(bench.effects()) == 2 * count + 1
    assert query(bench.path, "SELECT max(rescues), max(fence) FROM jobs") == [(0, 1)]
    assert integrity(bench.path) == "ok"


async def test_a_handler_that_blocks_the_loop_past_its_time_does_not_keep_what_waits_behind_it(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([quick.new(bench.where).job for _ in range(200)])
        with bench.worker(concurrency=1, settings=SETTINGS | {"timeout_grace": 0.1}):
            wait_until(lambda: bench.counts() == {"completed": 200})
            for_ever = blocking.options(priority=1, timeout=0.2).new(bench.where, 60)
            behind = [quick.new(bench.where) for _ in range(10)]
            await store.jobs.enqueue([call.job for call in (for_ever, *behind)])
            wait_until(lambda: bench.effects("began"))
            wait_until(lambda: bench.counts() == {"completed": 200, "in_progress": 11})
            rescued: list[Rescued] = []
            deadline = time.monotonic() + 20
            while len(rescued) < 11 and time.monotonic() < deadline:
                rescued += await store.upkeep.rescue()
                await asyncio.sleep(0.01)
    assert {lease.id for lease in rescued} == {c.job.id for c in (for_ever, *behind)}
    assert query(bench.path, "SELECT max(rescues) FROM jobs WHERE type = 'quick'") == [(0,)]


async def rescue_until_done(store: Store, bench: Bench, count: int) -> list[Rescued]:
    """Somebody who takes away every lease as soon as it runs out."""
    rescued: list[Rescued] = []
    deadline = time.monotonic() + 30
    while bench.counts() != {"completed": count} and time.monotonic() < deadline:
        rescued += await store.upkeep.rescue()
        await asyncio.sleep(0.01)
    assert bench.counts() == {"completed": count}
    return rescued
