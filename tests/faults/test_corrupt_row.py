"""Fault 30: rows edited by hand into nonsense, types nobody knows, a newer schema."""

from pathlib import Path

import apsw
import pytest

from penstock.model.job import Lease
from penstock.model.states import Status
from penstock.model.store_errors import SchemaTooNew
from penstock.store.contract import JobFilter, Resolution, Store
from penstock.store.sqlite.migrate import latest
from penstock.testing.clock import FakeClock
from tests.faults.support.facts import integrity, job_ids
from tests.faults.support.work import claim_of, completed, ending, new_jobs, opened

pytestmark = [pytest.mark.faults, pytest.mark.quick]

BURIED = 4
BROKEN = {
    "a payload that is not JSON": "payload = '{not json'",
    "a payload that is not UTF-8": "payload = CAST(x'7bff00fe' AS TEXT)",
    "an empty payload": "payload = ''",
    "tags that are not JSON": "tags = '[broken'",
    "tags that are no list": "tags = '7'",
    "a checkpoint that is not JSON": "checkpoint = '{half'",
    "an unknown key scope": "key = 'k', key_scope = 'sideways'",
    "no time of queueing": "queued_at = NULL",
    "times from another world": "scheduled_at = -9223372036854775807, rank = 9223372036854775807",
    "an absurd count of attempts": "attempts = 1000000",
}


@pytest.fixture(params=BROKEN.values(), ids=list(BROKEN))
def broken(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_broken_row_does_not_keep_others_from_being_claimed_nor_itself_from_a_grave(
    tmp_path: Path, broken: str
) -> None:
    path = tmp_path / "work.db"
    async with opened(path) as store:
        victim, others = await with_a_victim(store, path, broken)
        leases = await claim_all(store)
        assert {lease.id for lease in leases} == {victim, *others}
        settled = [ending(x, BURIED) if x.id == victim else completed(x) for x in leases]
        assert await store.jobs.settle("worker:1", settled) == []

        assert await statuses(store) == {victim: Status.DEAD_LETTER} | dict.fromkeys(
            others, Status.COMPLETED
        )
        (letter,) = await store.dead.find(resolution=Resolution.PENDING)
        assert letter.job_id == victim
    assert integrity(path) == "ok"


async def test_a_broken_row_does_not_keep_others_from_being_rescued(
    tmp_path: Path, broken: str
) -> None:
    path, clock = tmp_path / "work.db", FakeClock()
    async with opened(path, clock) as store:
        jobs = new_jobs(10)
        await store.jobs.enqueue(jobs)
        await store.jobs.claim(claim_of("gone:1", 10))
        edit(path, broken, jobs[3].id)
        clock.advance(61)
        assert len(await store.upkeep.rescue()) == 10
        assert await store.upkeep.rescue() == []
        assert len(await claim_all(store)) == 10


async def test_a_broken_row_that_expires_does_not_keep_others_from_being_claimed(
    tmp_path: Path, broken: str
) -> None:
    path = tmp_path / "work.db"
    async with opened(path) as store:
        victim, others = await with_a_victim(store, path, f"{broken}, expires_at = 1")
        assert {lease.id for lease in await claim_all(store)} == others
        assert (await statuses(store))[victim] is Status.DEAD_LETTER


async def test_a_running_row_without_a_lease_does_not_keep_others_from_being_rescued(
    tmp_path: Path,
) -> None:
    path, clock = tmp_path / "work.db", FakeClock()
    async with opened(path, clock) as store:
        jobs = new_jobs(10)
        await store.jobs.enqueue(jobs)
        await store.jobs.claim(claim_of("gone:1", 10))
        edit(path, "lease_owner = NULL", jobs[3].id)
        edit(path, "lease_until = NULL", jobs[4].id)
        clock.advance(61)
        rescued = {r.id for r in await store.upkeep.rescue()}
        assert rescued == {job.id for job in jobs}
        assert {lease.id for lease in await claim_all(store)} == rescued


async def test_jobs_of_unknown_types_wait_and_are_reported_while_others_progress(
    tmp_path: Path,
) -> None:
    path = tmp_path / "work.db"
    async with opened(path) as store:
        strangers = [new_jobs(1, job_type=f"later.{n}")[0] for n in range(600)]
        await store.jobs.enqueue(strangers)
        await store.jobs.enqueue(new_jobs(5))
        leases = await claim_all(store)
        assert [lease.type for lease in leases] == ["work"] * 5
        waiting = await store.workers.waiting_types()
        assert waiting == {job.type: 1 for job in strangers}
        assert len(await store.reader.find(JobFilter(statuses=(Status.QUEUED,), limit=1000))) == 600


async def test_a_store_with_a_newer_schema_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with opened(path) as store:
        await store.jobs.enqueue(new_jobs(3))
    connection = apsw.Connection(str(path))
    newer = latest() + 1
    connection.execute("UPDATE penstock_meta SET value = ? WHERE name = 'schema'", (newer,))
    connection.close()
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew) as refusal:
        async with opened(path):
            raise AssertionError("a newer schema was opened")

    assert (refusal.value.found, refusal.value.supported) == (newer, latest())
    assert path.read_bytes() == before
    assert len(job_ids(path)) == 3


async def with_a_victim(store: Store, path: Path, broken: str) -> tuple[str, set[str]]:
    """Ten queued jobs, one of them edited by hand; its id, and those of the others."""
    jobs = new_jobs(10)
    await store.jobs.enqueue(jobs)
    victim = jobs[3].id
    edit(path, broken, victim)
    return victim, {job.id for job in jobs} - {victim}


def edit(path: Path, change: str, job_id: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(f"UPDATE jobs SET {change} WHERE id = ?", (job_id,))
    assert connection.changes() == 1
    connection.close()


async def claim_all(store: Store) -> list[Lease]:
    return (await store.jobs.claim(claim_of("worker:1", 1000))).leases


async def statuses(store: Store) -> dict[str, Status]:
    return {job.id: job.status for job in await store.reader.find(JobFilter(limit=100))}
