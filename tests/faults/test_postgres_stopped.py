"""Fault 12: PostgreSQL stops in the middle of the work, and comes back."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from penstock.store.contract import Store
from proof.servers import PostgresServer
from proof.torture import autopsy
from tests.faults.support.facts import TORTURE, figure
from tests.faults.support.jobs import held
from tests.faults.support.places import executions, statuses
from tests.faults.support.traffic import flowing
from tests.faults.support.waiting import eventually
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

RESUMES_SECONDS = figure(short=60, full=10)
AT_ONCE = figure(short=50, full=200)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.mark.quick
async def test_nothing_acknowledged_is_lost_and_work_resumes_after_every_immediate_stop(
    server: PostgresServer,
) -> None:
    luck, url = Random(12), server.create_database("work")
    async with opened(url) as store:
        async with flowing(store) as traffic:
            for _ in range(figure(short=2, full=100)):
                await traffic.more_settled()
                await asyncio.sleep(luck.uniform(0, 0.2))
                await asyncio.to_thread(server.restart, "immediate")
                await traffic.more_settled(RESUMES_SECONDS)
        ids = traffic.acknowledged
        assert await statuses(store, ids) == {"completed": len(ids)}
        endings = Counter(e.job_id for e in await executions(store, ids) if e.status == "completed")
        assert endings == dict.fromkeys(ids, 1)
    assert traffic.stale == []
    assert autopsy(server, url) == []


@pytest.mark.parametrize("mode", ["fast", "immediate"] if TORTURE else ["immediate"])
async def test_a_restart_while_many_jobs_run_duplicates_none_of_them(
    mode: Literal["fast", "immediate"], server: PostgresServer, tmp_path: Path
) -> None:
    """The leases last three seconds, and the server is away for longer than that."""
    bench = Bench(tmp_path, server.create_database("work"))
    settings = {"lease": 3.0, "renew_interval": 2.5, "rescue_interval": 0.2, "prefetch": 0}
    calls = [held.new(bench.where, bench.gate).job for _ in range(AT_ONCE)]
    ids = [job.id for job in calls]
    async with opened(bench.url) as store:
        with (
            bench.worker(concurrency=AT_ONCE // 2, settings=settings, owner="a:1") as one,
            bench.worker(concurrency=AT_ONCE // 2, settings=settings, owner="b:1") as two,
        ):
            await eventually(lambda: len(bench.events("worker_started")) == 2)
            await store.jobs.enqueue(calls)
            await eventually(lambda: len(bench.effects("began")) == AT_ONCE, seconds=60)
            await asyncio.to_thread(server.stop, mode)
            await asyncio.sleep(4)
            await asyncio.to_thread(server.start)
            await eventually(lambda: renewed(store, ids))
            # Whoever leads has had the time for a rescue, had it been one's right.
            await asyncio.sleep(4)
            bench.open_gate()
            await eventually(lambda: all_completed(store, ids), seconds=60)
            assert (one.exit_code, two.exit_code) == (None, None)
        found = await executions(store, ids)
        assert Counter(execution.job_id for execution in found) == dict.fromkeys(ids, 1)
        assert {execution.status for execution in found} == {"completed"}
        assert {(j.fence, j.rescues) for j in await store.reader.get(ids)} == {(1, 0)}
    assert Counter(e.job_id for e in bench.effects()) == dict.fromkeys(ids, 1)
    assert Counter(e.job_id for e in bench.effects("began")) == dict.fromkeys(ids, 1)
    assert bench.events("lease_lost", "lease_rescued", "stale_settlement") == []


async def renewed(store: Store, ids: list[str]) -> bool:
    """Whether every lease runs again."""
    now = store.clock.now()
    return all((job.lease_until or 0) > now for job in await store.reader.get(ids))


async def all_completed(store: Store, ids: list[str]) -> bool:
    return await statuses(store, ids) == {"completed": len(ids)}
