"""A search by payload asks the index of ended jobs, and finds what a look at every job finds."""

from collections.abc import AsyncIterator

import pytest

from penstock.model.states import Status
from penstock.store.contract import JobFilter
from penstock.store.postgres import store as stores
from penstock.store.postgres.store import PostgresStore
from penstock.store.relational import search
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, a_job, claim_all, completed, enqueue

WANTED = (("user.id", "7"), ("kind", '"mail"'))


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_store_url, FakeClock())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def ids(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that are wanted, newest first: four have ended, the first lives."""
    monkeypatch.setattr(search, "FIRST_LOOKS", 1)
    payloads = [f'{{"user":{{"id":{n % 10}}},"kind":"mail","n":{n}}}' for n in range(40)]
    made = await store.jobs.enqueue([a_job(payload=payload) for payload in payloads])
    leases = await claim_all(store)
    await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
    wanted = [job.id for job in made][7::10]
    wanted.append(await enqueue(store, payload='{"kind":"mail","user":{"id":7.0}}'))
    await enqueue(store, payload='{"kind":"mail","user":{"id":[7]}}')
    return wanted[::-1]


async def _found(store: PostgresStore, where: JobFilter) -> list[str]:
    found: list[str] = []
    before = None
    while True:
        page = await store.reader.search_ids(
            JobFilter(payload=where.payload, statuses=where.statuses, before=before, limit=2)
        )
        found += page.ids
        before = page.before
        if before is None:
            return found


@pytest.mark.parametrize("few", [2, 2_000])
async def test_living_and_ended_jobs_are_found_by_their_payloads(
    store: PostgresStore, ids: list[str], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "FEW", few)
    assert await _found(store, JobFilter(payload=WANTED)) == ids
    ended = JobFilter(payload=WANTED, statuses=(Status.COMPLETED,))
    assert await _found(store, ended) == ids[1:]


@pytest.mark.parametrize(
    "payload",
    [
        (("user.id", "7"), ("user", '{"id":7}')),
        (("user", '{"id":7}'), ("user.id", "7")),
        (("user.id", "7"), ("user.id", "7.0")),
    ],
)
async def test_paths_into_each_other_are_no_obstacle(
    store: PostgresStore, ids: list[str], payload: tuple[tuple[str, str], ...]
) -> None:
    assert await _found(store, JobFilter(payload=payload)) == ids


async def test_a_path_into_a_list_is_none_for_the_index(
    store: PostgresStore, ids: list[str]
) -> None:
    assert ids
    [wanted] = [
        job.id
        for job in await store.reader.find(JobFilter())
        if job.payload == '{"kind":"mail","user":{"id":[7]}}'
    ]
    assert await _found(store, JobFilter(payload=(("user.id.0", "7"),))) == [wanted]
