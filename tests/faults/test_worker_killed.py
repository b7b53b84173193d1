"""Fault 1: workers and servers killed at random; who notices, and what is left of them."""

import io
import json
import signal
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from penstock.torture import run_torture
from proof.torture import GROUNDS
from tests.faults.support.facts import TORTURE, figure, integrity
from tests.faults.support.jobs import held, held_in_process, never_letting_go, quick
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench, gone, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

STORES = ("sqlite", "postgres", "redis", *(("postgres+redis",) if TORTURE else ()))


@pytest.mark.parametrize("store", STORES)
def test_no_job_is_lost_and_no_stale_write_accepted_while_all_are_killed_at_random(
    store: str,
) -> None:
    said = io.StringIO()
    code = run_torture(
        jobs=figure(short=40, full=10_000),
        kills=figure(short=2, full=500),
        seconds=figure(short=2, full=400),
        ground=GROUNDS[store],
        seed=1,
        as_json=True,
        console=Console(file=said, width=200),
    )
    figures = json.loads(said.getvalue())
    harmed = store != "sqlite"
    assert (figures["cuts"] > 0, figures["crashes"] > 0) == (harmed, harmed)
    assert figures["kills"] == figure(short=2, full=500)
    assert figures["acknowledged"] == figure(short=40, full=10_000)
    assert (figures["lost"], figures["stale_writes"], figures["unexplained"]) == (0, 0, 0), figures
    assert code == 0


async def test_a_supervisor_replaces_a_killed_worker_and_its_jobs_are_rescued_at_once(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([held.new(bench.where, bench.gate).job for _ in range(3)])
        with bench.supervisor(concurrency=3) as supervisor:
            wait_until(lambda: len(bench.effects("began")) == 3)
            first = only_child(supervisor)
            first.kill()
            wait_until(lambda: gone(first.pid))
            bench.open_gate()
            # The leases would last another minute: only their owner's death frees them so soon.
            wait_until(lambda: bench.counts() == {"completed": 3}, seconds=50)
            assert only_child(supervisor).pid != first.pid
            supervisor.signal(signal.SIGTERM)
            assert supervisor.wait() == 0
    assert bench.figure("SELECT count(*) FROM job_executions WHERE status = 'lost'") == 3
    assert integrity(bench.path) == "ok"


async def test_the_workers_of_a_killed_supervisor_finish_their_jobs_and_end(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    async with opened(bench.path) as store:
        await store.jobs.enqueue([held.new(bench.where, bench.gate).job])
        with bench.supervisor() as supervisor:
            wait_until(lambda: bench.effects("began"))
            orphan = only_child(supervisor)
            supervisor.signal(signal.SIGKILL)
            bench.open_gate()
            wait_until(lambda: gone(orphan.pid))
    assert bench.counts() == {"completed": 1}
    assert len(bench.effects()) == 1


@pytest.mark.parametrize("handler", [held_in_process, never_letting_go], ids=lambda h: h.name)
async def test_the_process_of_a_job_does_not_outlive_its_worker(
    handler: object, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    prepared = (
        held_in_process.new(bench.where, bench.gate)
        if handler is held_in_process
        else never_letting_go.new(bench.where)
    )
    async with opened(bench.path) as store:
        await store.jobs.enqueue([prepared.job, quick.new(bench.where).job])
        with bench.worker() as worker:
            (began,) = wait_until(lambda: bench.effects("began"))
            assert began.pid != worker.pid
            worker.signal(signal.SIGKILL)
            wait_until(lambda: gone(began.pid))


def only_child(supervisor):  # type: ignore[no-untyped-def]
    return wait_until(lambda: [c for c in supervisor.children() if is_worker(c)])[0]


def is_worker(process: psutil.Process) -> bool:
    try:
        return "penstock.worker.process" in process.cmdline()
    except psutil.Error:  # it ended meanwhile
        return False
