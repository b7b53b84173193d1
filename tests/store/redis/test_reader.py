"""Questions that look at more jobs than one script may."""

import pytest

from penstock.model.states import Status
from penstock.store.contract import JobFilter, Store
from penstock.store.redis.server import Server
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    a_job,
    claim_all,
    completed,
    dead_job,
    enqueue,
    running,
)

MANY = 6_000


async def test_one_among_thousands_is_found_by_each_filter(store: Store) -> None:
    wanted = await enqueue(store, type="rare", queue="rare", tenant_id="rare", tags=("rare",))
    await store.jobs.enqueue([a_job(tags=("often",)) for _ in range(MANY)])
    for where in (
        JobFilter(type="rare"),
        JobFilter(queue="rare"),
        JobFilter(tenant_id="rare"),
        JobFilter(tag="rare"),
        JobFilter(type="rare", statuses=(Status.QUEUED,)),
    ):
        assert [job.id for job in await store.reader.find(where)] == [wanted]


@pytest.mark.thorough
async def test_pages_go_through_thousands_without_gaps(store: Store) -> None:
    await store.jobs.enqueue([a_job(type="ab"[n % 2]) for n in range(MANY)])
    for type_ in (None, "a"):
        seen: list[str] = []
        where = JobFilter(type=type_, limit=1_700)
        while page := await store.reader.find(where):
            assert len(page) <= where.limit
            seen += [job.id for job in page]
            where = JobFilter(type=type_, limit=1_700, before=seen[-1])
        assert len(seen) == len(set(seen)) == (MANY if type_ is None else MANY // 2)
    assert len(await store.reader.waiting(limit=MANY)) == MANY


@pytest.mark.parametrize("many", [10, MANY])
@pytest.mark.thorough
async def test_pages_of_one_status_are_in_order_whether_few_or_many(
    store: Store, many: int
) -> None:
    await store.jobs.enqueue([a_job() for _ in range(many)])
    for lease in await claim_all(store, limit=9):
        await store.jobs.settle(OWNER, [completed(lease)])
    made = [job.id for job in await store.reader.waiting(limit=MANY)]
    seen: list[str] = []
    while page := await store.reader.find(
        JobFilter(statuses=(Status.QUEUED,), limit=4_000, before=seen[-1] if seen else None)
    ):
        seen += [job.id for job in page]
    assert seen == made[::-1]
    for status in (Status.PENDING, Status.FAILED, Status.PAUSED, Status.DEAD_LETTER):
        assert await store.reader.find(JobFilter(statuses=(status,))) == []


@pytest.mark.thorough
async def test_more_groups_of_dead_letters_than_one_script_counts(store: Store) -> None:
    letters = [await dead_job(store, type=f"type-{n % 3}") for n in range(1_050)]
    groups = await store.dead.groups()
    assert sum(group.count for group in groups) == len(letters)
    assert [group.count for group in groups] == [350, 350, 350]
    assert len(await store.dead.find(type="type-1", limit=1_000)) == 350


async def test_thousands_are_read_in_one_call(store: Store) -> None:
    jobs = [a_job() for _ in range(2_500)]
    await store.jobs.enqueue(jobs)
    ids = [job.id for job in jobs]
    assert [job.id for job in await store.reader.get(ids)] == ids


async def test_a_job_damaged_by_hand_does_not_hide_the_others(
    store: Store, valkey_url: str
) -> None:
    damaged, sound = await enqueue(store), await enqueue(store, tags=("t",))
    server = Server(valkey_url)
    await server.open()
    key = f"{server.prefix}job:{damaged}"
    await server.ask("HSET", key, "payload", b"\xff\xfe", "doc", "not json")
    await server.close()
    found = await store.reader.find(JobFilter())
    assert [job.id for job in found] == [sound, damaged]
    assert "�" in found[1].payload


async def test_the_longest_running_come_first_whoever_runs_them(store: Store) -> None:
    first = await running(store)
    [second] = [await running(store)]
    assert [job.id for job in await store.reader.running()] == [first.id, second.id]


async def test_the_longest_running_are_found_among_hundreds(store: Store, clock: FakeClock) -> None:
    ids: list[str] = []
    for place in range(6):
        await store.jobs.enqueue([a_job() for _ in range(100)])
        ids += [lease.id for lease in await claim_all(store, owner=f"w{place % 2}:1:x")]
        clock.advance(seconds=1)
    found = [job.id for job in await store.reader.running(250)]
    assert found == [*sorted(ids[:100]), *sorted(ids[100:200]), *sorted(ids[200:300])[:50]]
    assert len(await store.reader.running(1_000)) == 600
