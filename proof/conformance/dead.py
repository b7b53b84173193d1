"""Dead letters: what is kept, and how people go through them."""

from typing import Any

from msgspec.json import decode

from penstock.model.states import Status
from penstock.store.contract import DeadLetter, Report, Resolution, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    BROKEN,
    NOBODY,
    OWNER,
    buried,
    claim_one,
    dead_job,
    enqueue,
    failed,
    job_of,
    running,
    status_of,
)


async def _letter(store: Store, job_id: str) -> DeadLetter:
    letter = await store.dead.get(job_id)
    assert letter is not None
    return letter


class TestDeadLetters:
    """A snapshot of the job at its death, with its executions."""

    async def test_a_letter_says_what_went_wrong(self, store: Store, clock: FakeClock) -> None:
        job_id = await dead_job(store, queue="mail", tenant_id="acme")
        letter = await _letter(store, job_id)
        assert (letter.job_id, letter.type, letter.queue) == (job_id, "work", "mail")
        assert (letter.tenant_id, letter.reason) == ("acme", BROKEN.error_class)
        assert (letter.error, letter.error_code) == (BROKEN.message, BROKEN.code)
        assert letter.fingerprint == BROKEN.fingerprint
        assert (letter.attempts, letter.rescues) == (1, 0)
        assert (letter.resolution, letter.notes) == (Resolution.PENDING, None)
        assert (letter.resolved_by, letter.resolved_at) == (None, None)
        assert letter.created_at == clock.now()

    async def test_a_letter_holds_a_snapshot_of_the_job(self, store: Store) -> None:
        payload, tags = '{"to":["ann"]}', ("a", "b")
        job_id = await dead_job(store, payload=payload, priority=3, tags=tags, key="k")
        snapshot = decode((await _letter(store, job_id)).snapshot)
        assert snapshot["id"] == job_id
        assert snapshot["payload"] == {"to": ["ann"]}
        assert (snapshot["priority"], snapshot["key"]) == (3, "k")
        assert snapshot["tags"] == ["a", "b"]

    async def test_a_letter_holds_the_executions(self, store: Store) -> None:
        job_id = await enqueue(store)
        await store.jobs.settle(OWNER, [failed(await claim_one(store), retry_in_ms=0)])
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        history = decode((await _letter(store, job_id)).executions)
        assert {e["fence"]: e["status"] for e in history} == {1: "failed", 2: "dead"}
        assert {e["error"] for e in history} == {BROKEN.message}

    async def test_a_job_that_lives_has_none(self, store: Store) -> None:
        assert await store.dead.get(await enqueue(store)) is None
        assert await store.dead.get(NOBODY) is None


class TestFindDead:
    """Pages of dead letters."""

    async def test_the_newest_come_first_in_pages(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for _ in range(5):
            ids.append(await dead_job(store))
            clock.advance(seconds=1)
        seen: list[str] = []
        while page := await store.dead.find(limit=2, before=seen[-1] if seen else None):
            assert len(page) <= 2
            seen += [letter.job_id for letter in page]
        assert seen == ids[::-1]

    async def test_a_job_that_died_again_is_the_newest(
        self, store: Store, clock: FakeClock
    ) -> None:
        first = await dead_job(store)
        clock.advance(seconds=1)
        second = await dead_job(store)
        clock.advance(seconds=1)
        await store.jobs.requeue([first])
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        assert [letter.job_id for letter in await store.dead.find()] == [first, second]
        assert [letter.job_id for letter in await store.dead.find(before=first)] == [second]

    async def test_they_are_found_by_type_and_by_resolution(self, store: Store) -> None:
        work, other = await dead_job(store), await dead_job(store, type="other")
        await store.dead.resolve([work], Resolution.IGNORED, notes=None, by=None)
        by_type = await store.dead.find(type="other")
        ignored = await store.dead.find(resolution=Resolution.IGNORED)
        pending = await store.dead.find(resolution=Resolution.PENDING)
        assert [letter.job_id for letter in by_type] == [other]
        assert [letter.job_id for letter in ignored] == [work]
        assert [letter.job_id for letter in pending] == [other]
        assert await store.dead.find(type="work", resolution=Resolution.PENDING) == []

    async def test_open_ones_are_found_newest_first(self, store: Store) -> None:
        ids = [await dead_job(store, type=f"t{n % 2}", tenant_id=f"c{n % 3}") for n in range(6)]
        await store.dead.resolve([ids[1]], Resolution.INVESTIGATING, notes=None, by=None)
        await store.dead.resolve([ids[2]], Resolution.RESOLVED, notes=None, by=None)
        await store.dead.resolve([ids[5]], Resolution.IGNORED, notes=None, by=None)

        async def found(**where: Any) -> list[int]:
            letters = await store.dead.find(only_open=True, **where)
            return [ids.index(letter.job_id) for letter in letters]

        assert await found() == [4, 3, 1, 0]
        assert await found(limit=1) == [4]
        assert await found(before=ids[3]) == [1, 0]
        assert await found(type="t1") == [3, 1]
        assert await found(type="t1", before=ids[3]) == [1]
        assert await found(tenant_id="c0") == [3, 0]
        assert await found(fingerprint=BROKEN.fingerprint) == [4, 3, 1, 0]
        assert await found(type="t0", fingerprint=BROKEN.fingerprint) == [4, 0]
        assert await found(resolution=Resolution.INVESTIGATING) == [1]
        assert await found(resolution=Resolution.RESOLVED) == []

    async def test_they_are_found_by_tenant(self, store: Store) -> None:
        ours = await dead_job(store, tenant_id="acme")
        theirs = await dead_job(store, tenant_id="globex")
        nobodys = await dead_job(store)
        for tenant, job_id in (("acme", ours), ("globex", theirs), ("", nobodys)):
            [letter] = await store.dead.find(tenant_id=tenant)
            assert letter.job_id == job_id
            [group] = await store.dead.groups(tenant_id=tenant)
            assert (group.count, group.newest_id) == (1, job_id)
            of = letter.fingerprint
            found = await store.dead.find(type="work", fingerprint=of, tenant_id=tenant)
            assert found == [letter]
        assert await store.dead.find(tenant_id="initech") == []
        assert await store.dead.groups(tenant_id="initech") == []


class TestResolve:
    """Where a person stands with a dead letter."""

    async def test_a_resolution_is_recorded(self, store: Store, clock: FakeClock) -> None:
        job_id = await dead_job(store)
        clock.advance(seconds=5)
        answer = await store.dead.resolve(
            [job_id, NOBODY], Resolution.RESOLVED, notes="fixed by hand", by="ann"
        )
        letter = await _letter(store, job_id)
        assert answer == [job_id]
        assert (letter.resolution, letter.notes) == (Resolution.RESOLVED, "fixed by hand")
        assert (letter.resolved_by, letter.resolved_at) == ("ann", clock.now())
        assert await status_of(store, job_id) is Status.DEAD_LETTER

    async def test_an_investigation_is_not_a_resolution_yet(self, store: Store) -> None:
        job_id = await dead_job(store)
        await store.dead.resolve([job_id], Resolution.INVESTIGATING, notes="hm", by="ann")
        letter = await _letter(store, job_id)
        assert (letter.resolution, letter.resolved_at) == (Resolution.INVESTIGATING, None)

    async def test_notes_stay_unless_new_ones_are_given(self, store: Store) -> None:
        job_id = await dead_job(store)
        await store.dead.resolve([job_id], Resolution.INVESTIGATING, notes="hm", by="ann")
        await store.dead.resolve([job_id], Resolution.IGNORED, notes=None, by="bob")
        letter = await _letter(store, job_id)
        assert (letter.notes, letter.resolved_by) == ("hm", "bob")

    async def test_a_requeue_resolves_the_letter(self, store: Store, clock: FakeClock) -> None:
        job_id = await dead_job(store)
        clock.advance(seconds=5)
        await store.jobs.requeue([job_id])
        letter = await _letter(store, job_id)
        assert (letter.resolution, letter.resolved_at) == (Resolution.RESOLVED, clock.now())

    async def test_a_second_death_opens_the_letter_again(self, store: Store) -> None:
        job_id = await dead_job(store)
        await store.jobs.requeue([job_id])
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        letter = await _letter(store, job_id)
        assert (letter.resolution, letter.resolved_at) == (Resolution.PENDING, None)
        assert len(decode(letter.executions)) == 2


class TestPurge:
    """Dead letters and their jobs are deleted for good."""

    async def test_the_job_and_its_history_are_gone(self, store: Store) -> None:
        lease = await running(store)
        told = Report(id=lease.id, fence=lease.fence, logs=[(0, "info", "hello")])
        await store.jobs.report(OWNER, [told])
        await store.jobs.settle(OWNER, [buried(lease)])
        kept = await dead_job(store)
        assert await store.dead.purge([lease.id, NOBODY]) == 1
        assert await store.dead.get(lease.id) is None
        assert await store.reader.get([lease.id]) == []
        assert await store.reader.executions(lease.id) == []
        assert await store.reader.logs(lease.id) == []
        assert await store.dead.get(kept) is not None

    async def test_a_job_that_is_not_dead_is_not_purged(self, store: Store) -> None:
        job_id = await enqueue(store)
        assert await store.dead.purge([job_id]) == 0
        assert await status_of(store, job_id) is Status.QUEUED

    async def test_a_requeued_job_outlives_its_letter(self, store: Store) -> None:
        job_id = await dead_job(store)
        await store.jobs.requeue([job_id])
        before = await job_of(store, job_id)
        await store.dead.purge([job_id])
        assert await store.dead.get(job_id) is None
        assert await job_of(store, job_id) == before
        assert (await claim_one(store)).id == job_id
