"""Fault 15: nobody hears of changes; polling finds everything in time."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proof.proxy import Proxy
from tests.faults.support.facts import figure
from tests.faults.support.jobs import quick
from tests.faults.support.pgbouncer import PROGRAM, PgBouncer
from tests.faults.support.places import Place, check_structure, statuses
from tests.faults.support.waiting import eventually
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

POLL_SECONDS = 1.0
MACHINE_SECONDS = figure(short=10, full=1) / 2
CHANNEL, ANOTHER = b'"penstock_changed"', b'"penstock_nothing"'


@contextmanager
def deaf(url: str) -> Iterator[str]:
    """LISTEN is accepted, and nothing is ever heard: what a pooler does to it."""
    with Proxy(url) as proxy:
        proxy.alter(lambda sent: sent.replace(CHANNEL, ANOTHER))
        yield proxy.url


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """Transactions of all clients share a few connections."""
    with PgBouncer(url) as bouncer:
        yield bouncer.url


WAYS = [deaf, pooled] if PROGRAM else [deaf]


@pytest.mark.parametrize("way", WAYS)
async def test_a_job_waits_no_longer_than_one_poll(
    way: Callable[[str], Iterator[str]], postgres_store_url: str, tmp_path: Path
) -> None:
    latencies: list[float] = []
    with way(postgres_store_url) as url:  # type: ignore[attr-defined]
        bench = Bench(tmp_path, url)
        async with opened(postgres_store_url) as store:
            with bench.worker(settings={"poll_interval": POLL_SECONDS}):
                await eventually(lambda: bench.events("leads"))
                for number in range(figure(short=3, full=50)):
                    await asyncio.sleep(0.137 * number % POLL_SECONDS)
                    began = time.monotonic()
                    await store.jobs.enqueue([quick.new(bench.where).job])
                    await eventually(lambda number=number: len(bench.effects()) > number)
                    latencies.append(time.monotonic() - began)
    assert max(latencies) < POLL_SECONDS + MACHINE_SECONDS
    assert max(latencies) > POLL_SECONDS / 10, "the worker was told after all"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.quick
async def test_all_work_is_done_behind_it(
    way: Callable[[str], Iterator[str]], postgres_store_url: str, tmp_path: Path
) -> None:
    with way(postgres_store_url) as url:  # type: ignore[attr-defined]
        bench = Bench(tmp_path, url)
        calls = [quick.new(bench.where).job for _ in range(300)]
        ids = [job.id for job in calls]
        async with opened(url) as store:
            await store.jobs.enqueue(calls)
            with bench.worker(burst=True, concurrency=20) as worker:
                assert await asyncio.to_thread(worker.wait, 60) == 0
            assert await statuses(store, ids) == {"completed": len(ids)}
            await check_structure(Place("postgres", postgres_store_url), store)
    assert len(bench.effects()) == len(ids)
