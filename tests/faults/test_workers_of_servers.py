"""Faults 2 to 5, 8, 10 and 11 where the store is a server: a small case of each."""

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from penstock.model.job import Job
from penstock.store.contract import Execution, Store
from proof.failpoints import EXIT_CODE
from tests.faults.support.children import Child
from tests.faults.support.facts import figure
from tests.faults.support.jobs import held, held_in_process, held_in_thread, poison, quick
from tests.faults.support.places import (
    Place,
    check_structure,
    everything,
    executions,
    on,
    statuses,
)
from tests.faults.support.waiting import eventually, rescued
from tests.faults.support.work import claim_of, completed, new_jobs, opened
from tests.faults.support.workers import Bench, gone

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

LEASE_MS = 300
EFFECTS = {"settled": 1, "before_settle": 2, "claimed": 1, "before_claim": 1}


@pytest.mark.quick
async def test_a_worker_that_dies_around_its_writes_loses_nothing_and_repeats_what_it_must(
    place: Place, tmp_path: Path
) -> None:
    bench, rounds = Bench(tmp_path, place.address), figure(short=1, full=200)
    calls = {(n, point): quick.new(bench.where).job for n in range(rounds) for point in EFFECTS}
    async with opened(place.address) as store:
        for (number, point), job in calls.items():
            owner = f"doomed:{number}-{point}"
            await store.jobs.enqueue([job])
            with Child("doomed_worker", place.address, point, owner) as worker:
                assert await asyncio.to_thread(worker.wait) == EXIT_CODE
            if point == "before_claim" and number + 1 < rounds:
                await run_all(bench)  # or the next one to die would take this job
        for number, point in calls:
            await store.upkeep.rescue(owner=f"doomed:{number}-{point}")
        await run_all(bench)
        ids = [job.id for job in calls.values()]
        assert await statuses(store, ids) == {"completed": len(ids)}
        effects = Counter(effect.job_id for effect in bench.effects())
        for (_, point), job in calls.items():
            assert effects[job.id] == EFFECTS[point], point
        rescues = {job.id: job.rescues for job in await store.reader.get(ids)}
        for (_, point), job in calls.items():
            assert point in ("before_settle", "claimed") or rescues[job.id] == 0, point
        await check_structure(place, store)


async def run_all(bench: Bench) -> None:
    with bench.worker(burst=True, owner="last:1") as worker:
        assert await asyncio.to_thread(worker.wait, 600) == 0


@pytest.mark.quick
async def test_no_acknowledged_job_is_lost_when_the_producer_is_killed_at_any_time(
    place: Place, tmp_path: Path
) -> None:
    luck, log = Random(4), tmp_path / "acknowledged"
    for _ in range(figure(short=1, full=200)):
        with Child("producer", place.address, log, 0) as child:
            assert child.answer() == "ready"
            before = len(log.read_text().splitlines())
            await eventually(lambda before=before: len(log.read_text().splitlines()) > before + 10)
            await asyncio.sleep(luck.uniform(0, 0.1))
            child.signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
    lines = [line.split() for line in log.read_text().splitlines()]
    sizes = {batch: int(size) for _, batch, size in lines}
    async with opened(place.address) as store:
        jobs = await everything(store)
        assert {job_id for job_id, _, _ in lines} <= {job.id for job in jobs}
        stored = Counter(job.created_by for job in jobs)
        assert {batch: stored[batch] for batch in sizes} == sizes
        await check_structure(place, store)


@pytest.mark.quick
async def test_a_worker_frozen_past_its_leases_cannot_write_under_any_of_them(
    place: Place,
) -> None:
    count = figure(short=30, full=1_000)
    async with opened(place.address) as store:
        jobs = new_jobs(count)
        await store.jobs.enqueue(jobs)
        with Child("frozen_worker", place.address, count, LEASE_MS) as worker:
            assert await asyncio.to_thread(worker.answer) == count
            worker.signal(signal.SIGSTOP)
            assert len(await rescued(store, count)) == count

            # A third is done by another worker, a third is running there, a third waits.
            mine = (await store.jobs.claim(claim_of("other:1", count * 2 // 3))).leases
            done = [completed(lease) for lease in mine[: count // 3]]
            assert await store.jobs.settle("other:1", done) == []

            worker.tell()
            worker.signal(signal.SIGCONT)
            assert await asyncio.to_thread(worker.answer) == count - len(mine)
            before = await picture(store, [job.id for job in jobs])
            worker.tell()
            assert await asyncio.to_thread(worker.answer) == [count] * 3
            assert await picture(store, [job.id for job in jobs]) == before
        await check_structure(place, store)


async def picture(store: Store, ids: Sequence[str]) -> tuple[list[Job], list[Execution]]:
    """All that is known of these jobs, but for how long those that run have run."""
    found: list[Job] = []
    for start in range(0, len(ids), 500):
        found += await store.reader.get(ids[start : start + 500])
    return found, [e for e in await executions(store, ids) if e.status != "running"]


@pytest.mark.parametrize("place", on("valkey"), indirect=True)
async def test_a_worker_process_stopped_past_its_leases_writes_nothing_under_them(
    place: Place, tmp_path: Path
) -> None:
    bench, count = Bench(tmp_path, place.address), 20
    settings = {"lease": 1.0, "renew_interval": 0.3}
    calls = [held.new(bench.where, bench.gate).job for _ in range(count)]
    ids = [job.id for job in calls]
    async with opened(place.address) as store:
        await store.jobs.enqueue(calls)
        with bench.worker(concurrency=count, settings=settings) as worker:
            await eventually(lambda: len(bench.effects("began")) == count)
            worker.signal(signal.SIGSTOP)
            assert len(await rescued(store, count)) == count
            leases = (await store.jobs.claim(claim_of("other:1", count, types=["held"]))).leases
            assert len(leases) == count
            assert await store.jobs.settle("other:1", [completed(x) for x in leases]) == []
            before = await picture(store, ids)
            bench.open_gate()
            worker.signal(signal.SIGCONT)
            await eventually(lambda: len(refused(bench)) == count)
            worker.signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0
        assert await picture(store, ids) == before
        await check_structure(place, store)


def refused(bench: Bench) -> set[str]:
    """The jobs whose lease the worker found lost."""
    return {line["job_id"] for line in bench.events("lease_lost", "stale_settlement")}


@pytest.mark.parametrize("place", on("postgres"), indirect=True)
async def test_a_job_that_segfaults_ends_as_a_dead_letter_and_its_siblings_complete(
    place: Place, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, place.address)
    async with opened(place.address) as store:
        siblings = [held.options(priority=1).new(bench.where, bench.gate) for _ in range(3)]
        bad = poison.new(bench.where, f"{bench.gate}-of-poison")
        waiting = [quick.new(bench.where) for _ in range(20)]
        ids = [call.job.id for call in (*siblings, *waiting)]
        await store.jobs.enqueue([call.job for call in (*siblings, bad, *waiting)])
        with bench.supervisor(concurrency=4) as supervisor:
            await eventually(lambda: len(bench.effects("began")) == 4)
            bench.open_gate("-of-poison")
            await eventually(lambda: len(starts_of(bench, bad.job.id)) > 1)
            bench.open_gate()
            await eventually(lambda: ended(store, [bad.job.id, *ids]))
            supervisor.signal(signal.SIGTERM)
            assert await asyncio.to_thread(supervisor.wait) == 0
        assert await statuses(store, ids) == {"completed": len(ids)}
        assert {job.attempts for job in await store.reader.get(ids)} == {1}
        (letter,) = await store.dead.find()
        assert (letter.job_id, letter.reason, letter.rescues) == (bad.job.id, "poison", 3)
        assert 1 < len(starts_of(bench, bad.job.id)) <= 3
        await check_structure(place, store)


def starts_of(bench: Bench, job_id: str) -> list[int]:
    """The processes a job was started in."""
    return [effect.pid for effect in bench.effects("began") if effect.job_id == job_id]


async def ended(store: Store, ids: Sequence[str]) -> bool:
    """Whether all of these jobs have ended."""
    return all(job.status.terminal for job in await store.reader.get(ids))


@pytest.mark.parametrize("place", on("valkey"), indirect=True)
@pytest.mark.quick
async def test_one_sigterm_lets_running_jobs_finish_and_repeats_nothing(
    place: Place, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, place.address)
    async with opened(place.address) as store:
        running = [held.new(bench.where, bench.gate), held_in_thread.new(bench.where, bench.gate)]
        waiting = [quick.new(bench.where) for _ in range(200)]
        ids = [call.job.id for call in (*running, *waiting)]
        await store.jobs.enqueue([call.job for call in running])
        with bench.worker(concurrency=4) as worker:
            await eventually(lambda: len(bench.effects("began")) == 2)
            await store.jobs.enqueue([call.job for call in waiting])
            await eventually(lambda: bench.effects())
            worker.signal(signal.SIGTERM)
            bench.open_gate()
            assert await asyncio.to_thread(worker.wait) == 0
        effects = Counter(effect.job_id for effect in bench.effects())
        assert set(effects.values()) == {1}
        assert await statuses(store, ids) == Counter(
            completed=len(effects), queued=len(ids) - len(effects)
        )
        untouched = [job for job in await store.reader.get(ids[2:]) if job.id not in effects]
        assert {(job.attempts, job.rescues) for job in untouched} <= {(0, 0)}
        assert len(await executions(store, ids)) == len(effects)
        await check_structure(place, store)


@pytest.mark.parametrize("place", on("postgres"), indirect=True)
@pytest.mark.quick
async def test_two_sigterms_free_every_lease_at_once_and_spend_no_attempt(
    place: Place, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, place.address)
    kinds = (held, held_in_thread, held_in_process)
    async with opened(place.address) as store:
        calls = [kind.new(bench.where, bench.gate) for kind in kinds for _ in range(2)]
        ids = [call.job.id for call in calls]
        await store.jobs.enqueue([call.job for call in calls])
        with bench.worker(concurrency=len(calls)) as worker:
            await eventually(lambda: len(bench.effects("began")) >= 5)
            processes = {effect.pid for effect in bench.effects("began")} - {worker.pid}
            worker.terminate_twice()
            # A drain would last 30 s, and the leases 60; how quick it is, a quiet machine shows.
            await eventually(lambda: all_queued(store, ids), seconds=figure(short=20, full=2))
            assert await asyncio.to_thread(worker.wait) == 0
            await eventually(lambda: all(map(gone, processes)))
        assert {(job.attempts, job.rescues) for job in await store.reader.get(ids)} == {(0, 0)}
        assert {e.status for e in await executions(store, ids)} == {"interrupted"}
        assert bench.effects() == []
        await check_structure(place, store)


async def all_queued(store: Store, ids: Sequence[str]) -> bool:
    """Whether no job is under a lease."""
    return await statuses(store, ids) == {"queued": len(ids)}
