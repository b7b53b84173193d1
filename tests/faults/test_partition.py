"""Faults 22 and 23: lines that are cut, that swallow everything, and that are slow."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from penstock import Settings
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Held, Store
from penstock.store.postgres import connect, database, session
from proof.proxy import Proxy
from tests.faults.support.facts import figure
from tests.faults.support.jobs import held, quick
from tests.faults.support.places import (
    SERVERS,
    Place,
    check_structure,
    executions,
    on,
    statuses,
)
from tests.faults.support.waiting import eventually
from tests.faults.support.work import claim_of, new_jobs, opened
from tests.faults.support.workers import Bench

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

LEASE_SECONDS = 2.0
SETTINGS = {"lease": LEASE_SECONDS, "renew_interval": 0.5, "rescue_interval": 0.5}


@pytest.fixture
def proxy(place: Place) -> Iterator[Proxy]:
    with Proxy(place.url) as proxy:
        yield proxy


@pytest.mark.parametrize("place", on("valkey"), indirect=True)
async def test_the_jobs_of_a_worker_that_is_cut_off_run_elsewhere_and_its_writes_are_refused(
    place: Place, proxy: Proxy, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, proxy.url)
    calls = [held.new(bench.where, bench.gate).job for _ in range(5)]
    ids = [job.id for job in calls]
    async with opened(place.url) as store:
        await store.jobs.enqueue(calls)
        with bench.worker(settings=SETTINGS, owner="cut:1") as cut_off:
            await eventually(lambda: len(bench.effects("began")) == 5)
            with bench.worker(settings=SETTINGS, owner="well:1", url=place.url):
                await eventually(lambda: len(bench.events("worker_started")) == 2)
                proxy.blackhole()
                # A term, a renewal and a lease pass before another may take them.
                await eventually(lambda: owned_by(store, ids, "well:1"), 6 * LEASE_SECONDS + 50)
                bench.open_gate()
                await eventually(lambda: all_completed(store, ids))
                written = await store.reader.get(ids), await executions(store, ids)
                proxy.heal()
                await eventually(lambda: len(refused(bench)) == 5, seconds=60)
                cut_off.signal(signal.SIGTERM)
                assert await asyncio.to_thread(cut_off.wait) == 0
        assert (await store.reader.get(ids), await executions(store, ids)) == written
        assert {job.fence for job in written[0]} == {3}
        ended = Counter((e.worker, e.status) for e in written[1])
        assert ended == {("cut:1", "lost"): 5, ("well:1", "completed"): 5}
        await check_structure(place, store)


async def owned_by(store: Store, ids: Sequence[str], owner: str) -> bool:
    jobs = await store.reader.get(ids)
    return all(job.lease_owner == owner and job.started_at for job in jobs)


async def all_completed(store: Store, ids: Sequence[str]) -> bool:
    return await statuses(store, ids) == {"completed": len(ids)}


def refused(bench: Bench) -> set[str]:
    """The jobs whose lease a worker found lost."""
    return {line["job_id"] for line in bench.events("lease_lost", "stale_settlement")}


@pytest.mark.parametrize("place", SERVERS, indirect=True)
@pytest.mark.quick
async def test_a_line_that_is_reset_again_and_again_costs_no_job_and_repeats_none(
    place: Place, proxy: Proxy, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, proxy.url)
    long = [held.new(bench.where, bench.gate).job for _ in range(3)]
    ids = [job.id for job in long]
    async with opened(place.url) as store:
        await store.jobs.enqueue(long)
        with bench.worker(concurrency=8, settings={"poll_interval": 0.2}) as worker:
            await eventually(lambda: len(bench.effects("began")) == 3)
            for _ in range(figure(short=3, full=300)):
                calls = [quick.new(bench.where).job for _ in range(20)]
                ids += [job.id for job in calls]
                await store.jobs.enqueue(calls)
                proxy.reset()
                await asyncio.sleep(0.1)
            bench.open_gate()
            # A claim whose answer was lost has left leases; their owner does not know of them.
            await eventually(lambda: all_completed_or_unheard(store, ids, bench))
            worker.signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait) == 0
        await store.upkeep.rescue(owner="test:1")
        with bench.worker(burst=True, owner="last:1") as worker:
            assert await asyncio.to_thread(worker.wait) == 0
        assert await all_completed(store, ids)
        assert Counter(effect.job_id for effect in bench.effects()) == dict.fromkeys(ids, 1)
        await check_structure(place, store)
    assert bench.events("stale_settlement", "lease_lost") == []


async def all_completed_or_unheard(store: Store, ids: Sequence[str], bench: Bench) -> bool:
    """Whether every job has ended, or is leased without having begun anywhere."""
    begun = {e.job_id for e in (*bench.effects(), *bench.effects("began"))}
    return all(
        job.status.terminal or (job.lease_owner and job.id not in begun)
        for job in await store.reader.get(ids)
    )


@pytest.mark.parametrize("place", SERVERS, indirect=True)
@pytest.mark.quick
async def test_a_line_that_swallows_everything_is_noticed_within_a_lease(
    place: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "TOO_LONG_SECONDS", 0.5)
    monkeypatch.setattr(database._Open, "LOOK_SECONDS", 0.1)
    timeout = "&timeout=0.5" if place.kind == "valkey" else "?connect_timeout=2"
    async with opened(proxy.url + timeout) as store:
        await store.jobs.enqueue(new_jobs(1))
        lease = (await store.jobs.claim(claim_of("owner:1", 1))).leases[0]
        held_lease = Held(lease.id, lease.fence, 60_000)
        proxy.blackhole()
        began = time.monotonic()
        renewing = asyncio.to_thread(store.leases.renew, "owner:1", [held_lease])
        answers = await asyncio.gather(
            renewing, store.jobs.enqueue(new_jobs(1)), store.reader.get([]), return_exceptions=True
        )
        assert [type(answer) for answer in answers[:2]] == [StoreUnavailable] * 2
        assert time.monotonic() - began < LEASE_SECONDS + 10
        proxy.heal()
        assert (await eventually(lambda: renew(store, held_lease))) == [[]]


async def renew(store: Store, lease: Held) -> list[list[str]]:
    """The leases that were lost, in a list that is true in any case."""
    return [(await asyncio.to_thread(store.leases.renew, "owner:1", [lease])).lost]


def test_a_silent_server_is_given_up_before_a_lease_is_over() -> None:
    lease = Settings().lease
    patience = session.TOO_LONG_SECONDS + database._Open.LOOK_SECONDS
    assert patience + int(connect._DEFAULTS["connect_timeout"]) < lease


@pytest.mark.parametrize("place", on("postgres"), indirect=True)
async def test_two_hundred_milliseconds_of_latency_expire_no_lease(
    place: Place, proxy: Proxy, tmp_path: Path
) -> None:
    """A renewal on PostgreSQL takes three round trips, and a new connection six."""
    settings = SETTINGS | {"lease": 4.0, "renew_interval": 1.0}
    bench = Bench(tmp_path, proxy.url)
    calls = [held.options(timeout=120).new(bench.where, bench.gate).job for _ in range(5)]
    calls += [quick.new(bench.where).job for _ in range(50)]
    ids = [job.id for job in calls]
    async with opened(place.url) as store:
        with (
            bench.worker(settings=settings, owner="far:1"),
            bench.worker(settings=settings, owner="near:1", url=place.url, types=("poison",)),
        ):
            await eventually(lambda: len(bench.events("worker_started")) == 2)
            proxy.delay(0.1)
            await store.jobs.enqueue(calls)
            await eventually(lambda: len(bench.effects("began")) == 5)
            await asyncio.sleep(figure(short=5, full=60))
            bench.open_gate()
            await eventually(lambda: all_completed(store, ids))
        assert {(job.fence, job.rescues) for job in await store.reader.get(ids)} == {(1, 0)}
        assert len(await executions(store, ids)) == len(ids)
        await check_structure(place, store)
    assert bench.events("lease_lost", "lease_rescued", "stale_settlement") == []
