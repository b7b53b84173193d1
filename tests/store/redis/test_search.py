"""Looking through many jobs on Redis: in short pieces, and from where another call stopped."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from penstock.store.contract import JobFilter, Store
from penstock.store.redis import reader
from penstock.testing.clock import FakeClock
from proof.conformance.build import a_job, enqueue
from proof.conformance.search import TestBoundedLooks as BoundedLooks


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a look ends early, and a page elsewhere than these tests expect."""
    monkeypatch.setattr(reader, "SECONDS", 60)


async def _all_ids(store: Store, where: JobFilter) -> tuple[list[str], int]:
    """All pages, and how many they were."""
    found: list[str] = []
    pages = 0
    while True:
        page = await store.reader.search_ids(where)
        found += page.ids
        pages += 1
        if page.before is None:
            return found, pages
        where = replace(where, before=page.before)


async def test_a_call_looks_at_so_many_jobs_and_tells_where_to_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LOOKS_AT_ONCE", 7)
    monkeypatch.setattr(reader, "PIECES", 3)
    jobs = [a_job(tags=("rare",) if n == 0 else ()) for n in range(50)]
    await store.jobs.enqueue(jobs)
    page = await store.reader.search(JobFilter(tag="rare"))
    assert (page.jobs, page.before) == ([], jobs[50 - 21].id)
    assert await _all_ids(store, JobFilter(tag="rare")) == ([jobs[0].id], 3)
    assert (await _all_ids(store, JobFilter(limit=4)))[0] == [job.id for job in reversed(jobs)]


async def test_a_time_is_found_among_many_without_looking_at_all(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LOOKS_AT_ONCE", 20)
    monkeypatch.setattr(reader, "PIECES", 2)
    begin = clock.now()
    jobs = []
    for _ in range(100):
        jobs.append(await enqueue(store))
        clock.advance(seconds=60)
    where = JobFilter(since=begin + 20 * 60_000, until=begin + 30 * 60_000)
    page = await store.reader.search_ids(where)
    assert (page.ids, page.before) == (jobs[29:19:-1], None)


async def test_large_payloads_are_looked_through_in_more_pieces(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PIECES", 2)
    large = '{"text":"' + "x" * 300_000 + '"}'
    jobs = [a_job(payload=large) for _ in range(10)]
    await store.jobs.enqueue(jobs)
    page = await store.reader.search_ids(JobFilter(text="nowhere"))
    assert (page.ids, page.before) == ([], jobs[2].id)


async def test_what_numbers_of_the_server_cannot_tell_apart_python_can(store: Store) -> None:
    here = await enqueue(store, payload='{"n":9007199254740993,"list":[],"flag":true}')
    await enqueue(store, payload='{"n":9007199254740992,"list":{},"flag":1}')
    for condition in (("n", "9007199254740993"), ("list", "[]"), ("flag", "true")):
        where = JobFilter(payload=(condition,))
        assert (await store.reader.search_ids(where)).ids == [here]
        assert [job.id for job in (await store.reader.search(where)).jobs] == [here]


@pytest.mark.parametrize(
    "test",
    [BoundedLooks.test_what_is_rare_is_found_among_many, BoundedLooks.test_ids_come_in_large_pages],
)
async def test_looks_that_end_early_leave_nothing_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, test: Callable[..., Awaitable[None]]
) -> None:
    monkeypatch.setattr(reader, "SECONDS", 0)
    await test(BoundedLooks(), store)
