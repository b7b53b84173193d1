"""Fault 14: the server does what it was asked, and its answer is lost."""

import threading
from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path

import pytest

from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.states import Status
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Store
from proof.proxy import Proxy
from tests.faults.support.jobs import poison, quick
from tests.faults.support.places import SERVERS, Place, check_structure, executions, statuses
from tests.faults.support.waiting import eventually
from tests.faults.support.work import claim_of, ending, new_jobs, opened
from tests.faults.support.workers import Bench

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("place", SERVERS, indirect=True),
    pytest.mark.timeout(120),
]

OWNER = "consumer:1"


@pytest.fixture
def proxy(place: Place) -> Iterator[Proxy]:
    with Proxy(place.url) as proxy:
        yield proxy


def lose_answer(place: Place, proxy: Proxy, word: str) -> threading.Event:
    """Lose the answer to the next commit, or to the next script that mentions a word."""
    wanted = b"COMMIT" if place.kind == "postgres" else word.encode()
    return proxy.drop_answer_after(lambda sent: wanted in sent)


async def unanswered(call: Awaitable[object]) -> None:
    """The caller hears that nobody knows."""
    with pytest.raises(StoreUnavailable):
        await call


@pytest.mark.quick
async def test_the_same_key_makes_one_job_though_nobody_heard_of_the_first(
    place: Place, proxy: Proxy
) -> None:
    async with opened(proxy.url) as store:
        # So that no script is missing later.
        await store.jobs.enqueue([NewJob(id=new_id(), type="other", key="invoice-6")])
        first = NewJob(id=new_id(), type="work", key="invoice-7")
        dropped = lose_answer(place, proxy, first.id)
        await unanswered(store.jobs.enqueue([first]))
        assert dropped.is_set()
        [same] = await eventually(lambda: store.jobs.enqueue([first]))
        second = NewJob(id=new_id(), type="work", key="invoice-7")
        [other] = await store.jobs.enqueue([second])
        assert (same.id, same.created) == (first.id, False)
        assert (other.id, other.created) == (first.id, False)
        assert await store.reader.get([second.id]) == []
        await check_structure(place, store)


async def test_a_settlement_that_is_sent_again_is_not_stale_and_changes_nothing(
    place: Place, proxy: Proxy
) -> None:
    async with opened(proxy.url) as store, opened(place.url) as witness:
        jobs = new_jobs(8)
        await store.jobs.enqueue(jobs)
        first, *leases = (await store.jobs.claim(claim_of(OWNER, 8))).leases
        await store.jobs.settle(OWNER, [ending(first, 0)])  # so that no script is missing later
        ids = [lease.id for lease in leases]
        settlements = [ending(lease, number) for number, lease in enumerate(leases)]
        dropped = lose_answer(place, proxy, ids[0])
        await unanswered(store.jobs.settle(OWNER, settlements))
        assert dropped.is_set()
        written = await witness.reader.get(ids), await executions(witness, ids)
        assert Status.IN_PROGRESS not in {job.status for job in written[0]}
        assert await eventually(lambda: settled_again(store.jobs.settle(OWNER, settlements))) == [0]
        assert (await witness.reader.get(ids), await executions(witness, ids)) == written
        await check_structure(place, store)


async def settled_again(call: Awaitable[list[str]]) -> list[int]:
    """How many were stale, in a list that is true in any case."""
    return [len(await call)]


async def test_a_worker_that_never_heard_of_its_leases_loses_no_job_and_runs_each_once(
    place: Place, proxy: Proxy, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, proxy.url)
    settings = {"lease": 1.0, "renew_interval": 0.3, "poll_interval": 30}
    ids: list[str] = []
    async with opened(place.url) as store:
        with bench.worker(settings=settings, concurrency=5):
            await eventually(lambda: bench.events("leads"))
            # Another claim may be on its way: one that found nothing, or one that was sent before.
            while not await taken_away(store, ids):
                calls = [quick.new(bench.where).job for _ in range(5)]
                ids.extend(job.id for job in calls)
                proxy.drop_answer_after(Claiming(place))
                await store.jobs.enqueue(calls)
                await eventually(lambda: all_completed(store, ids))
        assert Counter(effect.job_id for effect in bench.effects()) == dict.fromkeys(ids, 1)
        assert bench.events("stale_settlement") == []
        await check_structure(place, store)


class Claiming:
    """Matches what ends a claim: the commit behind it, or the script itself."""

    def __init__(self, place: Place) -> None:
        self._commits = place.kind == "postgres"
        self._claimed = False

    def __call__(self, sent: bytes) -> bool:
        names_types = quick.name.encode() in sent and poison.name.encode() in sent
        self._claimed = self._claimed or names_types
        return self._claimed and (b"COMMIT" in sent or not self._commits)


async def taken_away(store: Store, ids: Sequence[str]) -> bool:
    """Whether a lease was granted and never used."""
    return any(job.fence > 1 for job in await store.reader.get(ids))


async def all_completed(store: Store, ids: Sequence[str]) -> bool:
    return await statuses(store, ids) == {"completed": len(ids)}
