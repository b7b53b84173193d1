"""Fault 13: the server ends connections, five in a second, whatever they do."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from penstock.store.contract import Store
from proof.torture import CUT
from tests.faults.support.facts import figure
from tests.faults.support.jobs import quick
from tests.faults.support.places import Place, check_structure, executions, statuses
from tests.faults.support.waiting import eventually
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

PAUSE_SECONDS = 0.2


async def test_no_job_is_lost_and_none_repeated_while_connections_are_ended(
    postgres_store_url: str, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, postgres_store_url)
    kills, batch = figure(short=20, full=1_000), 40
    ids: list[str] = []
    async with (
        opened(bench.url) as store,
        await psycopg.AsyncConnection.connect(bench.url, autocommit=True) as killer,
    ):
        settings = {"lease": 10.0, "renew_interval": 2.0}
        with bench.worker(concurrency=4, settings=settings) as worker:
            await eventually(lambda: bench.events("worker_started"))
            for _ in range(kills):
                calls = [quick.new(bench.where).job for _ in range(batch)]
                await eventually(lambda calls=calls: store.jobs.enqueue(calls))
                ids += [job.id for job in calls]
                ended = await (await killer.execute(CUT, (1,))).fetchall()
                assert ended
                await asyncio.sleep(PAUSE_SECONDS)
            await eventually(lambda: all_completed(store, ids), seconds=180)
            worker.signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0
        effects = {(effect.job_id, effect.fence) for effect in bench.effects()}
        assert Counter(effect.job_id for effect in bench.effects()) == dict.fromkeys(ids, 1)
        history = await executions(store, ids)
        assert {(e.job_id, e.fence) for e in history if e.status == "completed"} == effects
        # A claim whose answer was lost has granted leases under which nothing ran.
        unheard = [e for e in history if e.status != "completed"]
        assert {e.status for e in unheard} <= {"lost"}
        assert len(unheard) < len(ids) / 100
        await check_structure(Place("postgres", bench.url), store)
    assert bench.events("stale_settlement", "lease_lost", "cycle_failed") == []


async def all_completed(store: Store, ids: list[str]) -> bool:
    return await statuses(store, ids) == {"completed": len(ids)}
