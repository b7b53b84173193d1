"""A search in small looks finds what a look at every job finds."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.model.ids import derived_id
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import JobFilter
from penstock.store.relational import search
from penstock.store.sqlite.store import SqliteStore
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, a_job, buried, claim_all, completed, enqueue

WORDS = ("red", "blue", "green")
SMALL = {"LOOKS": 12, "PLACES": 12, "FIRST_LOOKS": 3, "SCATTERED_LOOKS": 4, "AT_ONCE": 2}


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = SqliteStore("sqlite:///:memory:", None, FakeClock())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def jobs(store: SqliteStore) -> list[Job]:
    """A hundred jobs of all kinds, newest first."""
    chance = random.Random(5)
    clock = store.clock
    assert isinstance(clock, FakeClock)
    for number in range(100):
        fields: dict[str, Any] = {
            "id": derived_id(clock.now() + chance.randrange(-5_000, 5_000), str(number)),
            "type": chance.choice(WORDS),
            "queue": chance.choice(WORDS),
            "category": chance.choice(WORDS),
            "parent_job_id": chance.choice((None, "P")),
            "schedule_id": chance.choice((None, "S")),
            "tags": tuple(chance.sample(WORDS, 2)),
            "payload": f'{{"a":{{"n":{chance.randrange(4)}}}}}',
            "delay_ms": chance.choice((0, 10**6)),
        }
        await store.jobs.enqueue([a_job(**fields)])
        clock.advance(seconds=60)
    leases = await claim_all(store, types=WORDS, limit=40)
    await store.jobs.settle(OWNER, [completed(lease) for lease in leases[:20]])
    await store.jobs.settle(OWNER, [buried(lease) for lease in leases[20:30]])
    return await store.reader.find(JobFilter(limit=1_000))


@pytest.fixture
def small_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(search, name, value)


async def _pages(store: SqliteStore, where: JobFilter) -> list[list[str]]:
    pages = []
    while True:
        page = await store.reader.search_ids(where)
        pages.append(page.ids)
        if page.before is None:
            return pages
        where = replace(where, before=page.before)


def _fits(job: Job, where: JobFilter) -> bool:
    told = {
        "type": job.type,
        "queue": job.queue,
        "category": job.category,
        "parent_job_id": job.parent_job_id,
        "schedule_id": job.schedule_id,
    }
    return (
        all(getattr(where, name) in (None, value) for name, value in told.items())
        and (not where.statuses or job.status in where.statuses)
        and (where.tag is None or where.tag in job.tags)
        and (where.since is None or job.created_at >= where.since)
        and (where.until is None or job.created_at < where.until)
        and (where.text is None or where.text in f"{job.id} {job.type} {job.payload}")
        and all(f'"n":{value}' in job.payload for _, value in where.payload)
    )


def _chosen(chance: random.Random, jobs: list[Job]) -> JobFilter:
    """A filter by a few things."""
    moment = chance.choice(jobs).created_at
    things: dict[str, Any] = {
        "type": chance.choice(WORDS),
        "queue": chance.choice(WORDS),
        "category": chance.choice(WORDS),
        "parent_job_id": "P",
        "schedule_id": "S",
        "tag": chance.choice(WORDS),
        "statuses": tuple(chance.sample(list(Status), chance.randrange(1, 4))),
        "since": moment,
        "until": moment + chance.randrange(10**7),
        "text": chance.choice(WORDS),
        "payload": (("a.n", str(chance.randrange(5))),),
    }
    names = chance.sample(list(things), chance.randrange(3))
    return JobFilter(limit=chance.randrange(1, 8), **{name: things[name] for name in names})


@pytest.mark.parametrize("seed", range(8))
async def test_small_looks_leave_nothing_out_and_find_nothing_twice(
    store: SqliteStore, jobs: list[Job], seed: int, small_looks: None
) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        where = _chosen(chance, jobs)
        pages = await _pages(store, where)
        assert [job_id for page in pages for job_id in page] == [
            job.id for job in jobs if _fits(job, where)
        ], where
        assert all(len(page) <= where.limit for page in pages)


async def test_a_page_that_finds_nothing_says_where_to_go_on(
    store: SqliteStore, jobs: list[Job], small_looks: None
) -> None:
    page = await store.reader.search(JobFilter(type="none"))
    assert (page.jobs, page.before) == ([], jobs[SMALL["LOOKS"] - 1].id)


@pytest.mark.parametrize("payload", ["no JSON", '{"to":"ann"', "", '{"to":"ann"}x'])
async def test_a_payload_that_a_hand_has_spoilt_does_not_match(
    store: SqliteStore, payload: str
) -> None:
    spoilt, wanted = await enqueue(store), await enqueue(store, payload='{"to":"ann"}')
    await store._db.write(lambda tx: tx.run("set_payload", (payload, spoilt)))
    found = await store.reader.search_ids(JobFilter(payload=(("to", '"ann"'),)))
    assert found.ids == [wanted]


async def test_bytes_that_are_no_text_do_not_end_a_search(store: SqliteStore) -> None:
    spoilt, wanted = await enqueue(store), await enqueue(store, payload='{"to":"ann"}')
    await store._db.write(
        lambda tx: tx.connection.execute(
            """UPDATE jobs SET payload = CAST(x'7b22746f22ff22616e6e227d' AS TEXT) WHERE id = ?""",
            (spoilt,),
        )
    )
    found = await store.reader.search_ids(JobFilter(payload=(("to", '"ann"'),)))
    assert found.ids == [wanted]
    assert (await store.reader.search_ids(JobFilter(text="ANN"))).ids == [wanted, spoilt]
