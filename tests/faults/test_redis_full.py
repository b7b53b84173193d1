"""Faults 20 and 21: a Redis whose memory is full, and one that would make room by itself."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.model.store_errors import StoreFull, UnsafeServer
from penstock.store.contract import Store
from penstock.store.open import open_store
from proof.servers import RedisServer
from proof.servers.redis import Kind
from tests.faults.support.jobs import held, quick
from tests.faults.support.places import Place, check_structure, executions, statuses
from tests.faults.support.waiting import eventually
from tests.faults.support.work import new_jobs, opened
from tests.faults.support.workers import Bench

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

KINDS: tuple[Kind, ...] = ("valkey", "redis6")
FILLING = '"' + "x" * 10_000 + '"'
RESUMES_SECONDS = 15


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    options = {"maxmemory": "20mb", "appendfsync": "always"}
    with RedisServer(kind=request.param, options=options) as server:
        yield server


@pytest.mark.quick("valkey")
async def test_a_full_server_refuses_cleanly_loses_nothing_and_work_resumes(
    server: RedisServer, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, server.url)
    async with opened(server.url) as store:
        running = [held.new(bench.where, bench.gate).job for _ in range(3)]
        await store.jobs.enqueue(running)
        with bench.worker(concurrency=4, settings={"poll_interval": 0.2}) as worker:
            await eventually(lambda: len(bench.effects("began")) == 3)
            acknowledged = [job.id for job in running] + await fill(store, bench)
            bench.open_gate()
            # What there is gets done: only by that can the server ever have room again.
            await eventually(lambda: all_completed(store, acknowledged), RESUMES_SECONDS)
            server.ask("CONFIG", "SET", "maxmemory", "100mb")
            later = quick.new(bench.where).job
            await store.jobs.enqueue([later])
            acknowledged.append(later.id)
            await eventually(lambda: all_completed(store, acknowledged), RESUMES_SECONDS)
            worker.signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0
        effects = Counter(effect.job_id for effect in bench.effects())
        assert effects == dict.fromkeys(acknowledged, 1)
        ended = Counter(e.status for e in await executions(store, acknowledged))
        assert ended == {"completed": len(acknowledged)}
        await check_structure(Place("redis", server.url), store)
    assert len(bench.events("store_unavailable")) <= 1
    assert bench.events("stale_settlement", "lease_lost", "cycle_failed") == []


async def fill(store: Store, bench: Bench) -> list[str]:
    """Enqueue until the server refuses; the ids of what was acknowledged.

    What it refuses it refuses whole, in a sentence, and nothing of it is left behind.
    """
    acknowledged: list[str] = []
    for _ in range(500):
        light, heavy = quick.new(bench.where).job, new_jobs(20, job_type="idle", payload=FILLING)
        try:
            await store.jobs.enqueue([light])
            acknowledged.append(light.id)
            await store.jobs.enqueue(heavy)
        except StoreFull as refusal:
            told = str(refusal)
        else:
            continue
        assert "nothing was written, free some" in told
        assert await store.reader.get([job.id for job in heavy]) == []
        return acknowledged
    raise AssertionError("20 MB were never full")


async def all_completed(store: Store, ids: list[str]) -> bool:
    return await statuses(store, ids) == {"completed": len(ids)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
@pytest.mark.quick("valkey")
async def test_a_server_that_deletes_keys_of_its_own_accord_is_refused(
    kind: Kind, policy: str, tmp_path: Path
) -> None:
    with RedisServer(kind=kind, options={"maxmemory-policy": policy}) as server:
        with pytest.raises(UnsafeServer, match=f"maxmemory-policy is {policy}.*noeviction"):
            await open_store(server.url).open()
        assert server.ask("DBSIZE") == b":0\r\n"
        if policy == "allkeys-lru":
            bench = Bench(tmp_path, server.url)
            with bench.worker() as worker:
                assert await asyncio.to_thread(worker.wait) == 2
            assert "set it to noeviction" in bench.log()
