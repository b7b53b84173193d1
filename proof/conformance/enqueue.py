"""Enqueue: all jobs or none, under ids that are the caller's."""

import pytest
from msgspec.structs import asdict

from penstock.model.errors import PenstockError
from penstock.model.job import Enqueued, KeyScope, NewJob
from penstock.model.states import Status
from penstock.store.contract import JobFilter, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    a_job,
    claim_all,
    claim_one,
    completed,
    enqueue,
    job_of,
    status_of,
)

RICH = NewJob(
    id="01JD0000000000000000000001",
    type="work",
    payload='{"to":"ä\\n\\u0001 ✓"}',
    queue="mail",
    category="post",
    priority=2,
    max_retries=7,
    retry_delay_ms=1_500,
    backoff_multiplier=2.5,
    timeout_ms=9_000,
    key="welcome",
    key_scope=KeyScope.WINDOW,
    key_window_ms=5_000,
    tenant_id="acme",
    workspace_id="main",
    created_by="ann",
    parent_job_id="01JD0000000000000000000000",
    schedule_id="nightly",
    limit_key="smtp",
    order_key="ann",
    tags=("a", "b c"),
    metadata='{"n":1}',
    trace_context="00-abc",
)


class TestEnqueue:
    """What is stored, and what a retry of the call finds."""

    async def test_a_job_due_now_is_inserted_as_queued(
        self, store: Store, clock: FakeClock
    ) -> None:
        job = await job_of(store, await enqueue(store))
        assert job.status is Status.QUEUED
        assert job.created_at == job.updated_at == job.queued_at == job.scheduled_at == clock.now()
        assert (job.fence, job.attempts, job.snoozes, job.rescues) == (0, 0, 0, 0)
        assert (job.started_at, job.completed_at, job.failed_at) == (None, None, None)
        assert (job.lease_owner, job.lease_until) == (None, None)

    async def test_every_field_is_read_back_as_it_was_written(self, store: Store) -> None:
        await store.jobs.enqueue([RICH])
        job = asdict(await job_of(store, RICH.id))
        given = asdict(RICH)
        kept = given.keys() & job.keys() - {"scheduled_at", "expires_at"}
        assert {name: job[name] for name in kept} == {name: given[name] for name in kept}

    async def test_a_lease_carries_what_a_worker_needs(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.jobs.enqueue([RICH])
        lease = asdict(await claim_one(store))
        given = asdict(RICH)
        kept = given.keys() & lease.keys() - {"expires_at"}
        assert {name: lease[name] for name in kept} == {name: given[name] for name in kept}
        assert lease["created_at"] == lease["queued_at"] == lease["started_at"] == clock.now()

    async def test_a_delayed_job_waits_as_pending(self, store: Store, clock: FakeClock) -> None:
        job = await job_of(store, await enqueue(store, delay_ms=5_000))
        assert job.status is Status.PENDING
        assert job.scheduled_at == clock.now() + 5_000
        assert job.queued_at is None

    async def test_a_moment_to_come_is_waited_for(self, store: Store, clock: FakeClock) -> None:
        job = await job_of(store, await enqueue(store, scheduled_at=clock.now() + 1))
        assert (job.status, job.scheduled_at) == (Status.PENDING, clock.now() + 1)

    async def test_a_moment_in_the_past_is_due_now(self, store: Store, clock: FakeClock) -> None:
        job_id = await enqueue(store, scheduled_at=clock.now() - 1)
        assert await status_of(store, job_id) is Status.QUEUED

    async def test_expiry_counts_from_the_store_clock(self, store: Store, clock: FakeClock) -> None:
        relative = await job_of(store, await enqueue(store, expires_in_ms=500))
        absolute = await job_of(store, await enqueue(store, expires_at=clock.now() + 700))
        assert relative.expires_at == clock.now() + 500
        assert absolute.expires_at == clock.now() + 700

    async def test_no_jobs_are_enqueued_without_a_word(self, store: Store) -> None:
        assert await store.jobs.enqueue([]) == []

    async def test_answers_come_in_the_order_of_the_jobs(self, store: Store) -> None:
        jobs = [a_job() for _ in range(250)]
        answers = await store.jobs.enqueue(jobs)
        assert answers == [Enqueued(job.id, True) for job in jobs]


class TestRetriedEnqueue:
    """Ids are the client's, so a call whose answer was lost can be made again."""

    async def test_a_known_id_inserts_nothing_new(self, store: Store) -> None:
        job = a_job(payload='{"n":1}')
        assert await store.jobs.enqueue([job]) == [Enqueued(job.id, True)]
        assert await store.jobs.enqueue([job]) == [Enqueued(job.id, False)]
        assert len(await store.reader.find(JobFilter())) == 1

    async def test_a_known_id_keeps_what_it_had(self, store: Store) -> None:
        job = a_job(payload='{"n":1}')
        await store.jobs.enqueue([job])
        before = await job_of(store, job.id)
        await store.jobs.enqueue([a_job(id=job.id, payload='{"n":2}', priority=1, delay_ms=9)])
        assert await job_of(store, job.id) == before

    async def test_a_known_id_does_not_wake_a_job_that_has_ended(self, store: Store) -> None:
        job = a_job()
        await store.jobs.enqueue([job])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert await store.jobs.enqueue([job]) == [Enqueued(job.id, False)]
        assert await status_of(store, job.id) is Status.COMPLETED

    async def test_a_batch_may_mix_known_and_new_ids(self, store: Store) -> None:
        known, new = a_job(), a_job()
        await store.jobs.enqueue([known])
        answers = await store.jobs.enqueue([new, known])
        assert answers == [Enqueued(new.id, True), Enqueued(known.id, False)]

    async def test_an_id_twice_in_a_batch_is_one_job(self, store: Store) -> None:
        job = a_job()
        answers = await store.jobs.enqueue([job, job])
        assert answers == [Enqueued(job.id, True), Enqueued(job.id, False)]
        assert len(await claim_all(store)) == 1

    async def test_a_known_id_answers_with_itself_when_another_job_took_its_key(
        self, store: Store
    ) -> None:
        first = a_job(key="k", key_scope=KeyScope.WHILE_PENDING)
        await store.jobs.enqueue([first])
        await claim_one(store)
        await enqueue(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        assert await store.jobs.enqueue([first]) == [Enqueued(first.id, False)]


class TestBatch:
    """A batch is all or none."""

    @pytest.mark.parametrize("key", [None, "k"])
    async def test_a_job_the_store_refuses_takes_the_whole_batch_with_it(
        self, store: Store, key: str | None
    ) -> None:
        good, bad = a_job(key=key), a_job(priority=11)
        with pytest.raises(PenstockError):
            await store.jobs.enqueue([good, bad])
        assert await store.reader.get([good.id, bad.id]) == []
        assert await store.jobs.enqueue([good]) == [Enqueued(good.id, True)]
