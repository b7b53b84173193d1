"""A server that goes away while work runs: workers keep their jobs, and do not shout."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from penstock.store.contract import Store
from proof.servers import PostgresServer, RedisServer
from tests.faults.support.facts import TORTURE
from tests.faults.support.jobs import chatty, held, quick
from tests.faults.support.places import executions, statuses
from tests.faults.support.waiting import eventually
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench
from tests.support.fork_server import ROOT
from tests.support.places import LONG

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]

AWAY_SECONDS = 4
SETTINGS = {
    "lease": 4.0,
    "renew_interval": 0.5,
    "rescue_interval": 0.5,
    "poll_interval": 0.1,
    "heartbeat_interval": 0.5,
}
AnyServer = PostgresServer | RedisServer


def postgres() -> PostgresServer:
    return PostgresServer()


def valkey() -> RedisServer:
    return RedisServer(options={"appendfsync": "always"})


@pytest.fixture(params=[postgres, valkey] if LONG or TORTURE else [valkey])
def server(request: pytest.FixtureRequest) -> Iterator[AnyServer]:
    make: Callable[[], AbstractContextManager[AnyServer]] = request.param
    with make() as server:
        yield server


async def test_workers_keep_their_jobs_and_say_once_a_minute_that_the_server_is_away(
    server: AnyServer, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, server.url)
    calls = [held.new(bench.where, bench.gate).job for _ in range(9)]
    calls.append(chatty.new(bench.where, bench.gate).job)
    ids = [job.id for job in calls]
    async with opened(server.url) as store:
        await store.jobs.enqueue(calls)
        with bench.worker(concurrency=20, settings=SETTINGS) as worker:
            await eventually(lambda: len(bench.effects("began")) == 10)
            await asyncio.to_thread(server.kill)
            said = await asyncio.to_thread(doctor, server.url)
            assert said.returncode == 2
            assert "cannot be reached" in said.stderr
            await asyncio.sleep(AWAY_SECONDS)
            bench.open_gate()  # they end while nobody can be told
            await eventually(lambda: len(bench.effects()) == 10)
            assert worker.exit_code is None
            await asyncio.to_thread(server.start)
            await eventually(lambda: all_completed(store, ids), seconds=60)
            later = quick.new(bench.where).job
            await store.jobs.enqueue([later])
            await eventually(lambda: all_completed(store, [later.id]))
            await eventually(lambda: states(store, "running"))
            worker.signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0
        assert Counter(e.status for e in await executions(store, ids)) == {"completed": 10}
    assert Counter(effect.job_id for effect in bench.effects()) == dict.fromkeys(
        [*ids, later.id], 1
    )
    complaints = Counter((line["event"], line.get("service")) for line in warnings(bench))
    assert complaints["store_unavailable", None] == complaints["report_failed", None] == 1
    assert set(complaints.values()) == {1}, complaints


def doctor(url: str) -> "subprocess.CompletedProcess[str]":
    """What `penstock doctor` says."""
    command = [sys.executable, "-m", "penstock.cli", "doctor", "--url", url]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def warnings(bench: Bench) -> list[dict[str, str]]:
    return [line for line in bench.log_lines() if line["level"] != "info"]


async def all_completed(store: Store, ids: list[str]) -> bool:
    return await statuses(store, ids) == {"completed": len(ids)}


async def states(store: Store, *wanted: str) -> bool:
    return {worker.state for worker in await store.workers.list()} == set(wanted)
