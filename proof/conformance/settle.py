"""Settle: what each ending makes of the job, and what it leaves behind."""

from typing import Any

import pytest
from msgspec.json import decode

from penstock.model.outcome import Failed
from penstock.model.states import Status
from penstock.store.contract import Report, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    BROKEN,
    DIED,
    OTHER,
    OWNER,
    Ending,
    a_job,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    enqueue,
    failed,
    handed_back,
    job_of,
    running,
    snoozed,
    status_of,
)


class TestEndings:
    """One test per settlement: status, counts, times and the execution."""

    async def test_completed_keeps_the_result(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        clock.advance(seconds=2)
        assert await store.jobs.settle(OWNER, [completed(lease, '{"n":1}')]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.result, job.error) == (Status.COMPLETED, '{"n":1}', None)
        assert (job.attempts, job.snoozes, job.rescues) == (1, 0, 0)
        assert job.completed_at == job.updated_at == clock.now()
        assert job.started_at == lease.started_at
        [execution] = await store.reader.executions(lease.id)
        assert (execution.status, execution.result) == ("completed", '{"n":1}')

    async def test_completed_forgets_the_error_of_an_earlier_attempt(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        job = await job_of(store, lease.id)
        assert (job.attempts, job.error, job.error_details) == (2, None, None)

    async def test_failed_waits_for_its_retry_time(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        clock.advance(seconds=2)
        assert await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=3_000)]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.error) == (Status.FAILED, BROKEN.message)
        assert (job.attempts, job.snoozes, job.rescues) == (1, 0, 0)
        assert job.failed_at == job.updated_at == clock.now()
        assert job.scheduled_at == clock.now() + 3_000
        assert job.completed_at is None
        assert decode(job.error_details or "")["class"] == BROKEN.error_class
        [execution] = await store.reader.executions(lease.id)
        assert execution.status == "failed"
        assert execution.error == BROKEN.message
        assert execution.error_class == BROKEN.error_class
        assert execution.error_code == BROKEN.code
        assert execution.error_stack == BROKEN.stack

    async def test_failed_without_spending_counts_a_snooze_instead(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [failed(lease, spends_attempt=False)])
        job = await job_of(store, lease.id)
        assert (job.status, job.attempts, job.snoozes) == (Status.FAILED, 0, 1)

    async def test_failed_may_give_the_next_attempt_more_time(self, store: Store) -> None:
        lease = await running(store, timeout_ms=1_000)
        more = Failed(
            id=lease.id,
            fence=lease.fence,
            type=lease.type,
            queue=lease.queue,
            started_at=lease.queued_at,
            failure=BROKEN,
            retry_in_ms=0,
            timeout_ms=2_000,
        )
        await store.jobs.settle(OWNER, [more])
        assert (await claim_one(store)).timeout_ms == 2_000

    async def test_snoozed_spends_no_attempt(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        assert await store.jobs.settle(OWNER, [snoozed(lease, delay_ms=4_000)]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.attempts, job.snoozes) == (Status.PENDING, 0, 1)
        assert job.scheduled_at == clock.now() + 4_000
        assert (job.error, job.failed_at, job.completed_at) == (None, None, None)
        [execution] = await store.reader.executions(lease.id)
        assert execution.status == "snoozed"

    async def test_cancelled_keeps_the_reason(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        assert await store.jobs.settle(OWNER, [cancelled(lease, "withdrawn")]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.error, job.attempts) == (Status.CANCELLED, "withdrawn", 0)
        assert job.completed_at == clock.now()
        [execution] = await store.reader.executions(lease.id)
        assert execution.status == "cancelled"

    async def test_buried_becomes_a_dead_letter(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        assert await store.jobs.settle(OWNER, [buried(lease)]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.error, job.attempts) == (Status.DEAD_LETTER, BROKEN.message, 1)
        assert job.completed_at == job.failed_at == clock.now()
        [execution] = await store.reader.executions(lease.id)
        assert (execution.status, execution.error) == ("dead", BROKEN.message)
        assert await store.dead.get(lease.id) is not None

    async def test_crashed_goes_back_with_a_rescue(self, store: Store) -> None:
        lease = await running(store)
        assert await store.jobs.settle(OWNER, [crashed(lease)]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.attempts, job.rescues) == (Status.QUEUED, 0, 1)
        assert (job.error, job.started_at) == (DIED.message, None)
        [execution] = await store.reader.executions(lease.id)
        assert (execution.status, execution.error) == ("crashed", DIED.message)
        assert (await claim_one(store)).rescues == 1

    async def test_crashed_for_the_third_time_is_dead(self, store: Store) -> None:
        job_id = await enqueue(store)
        statuses = []
        for _ in range(3):
            await store.jobs.settle(OWNER, [crashed(await claim_one(store))])
            statuses.append(await status_of(store, job_id))
        job = await job_of(store, job_id)
        assert statuses == [Status.QUEUED, Status.QUEUED, Status.DEAD_LETTER]
        assert (job.attempts, job.rescues) == (0, 3)
        assert await store.dead.get(job_id) is not None
        assert len(await store.reader.executions(job_id)) == 3

    async def test_crashes_and_lost_leases_share_one_budget(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        for _ in range(2):
            await claim_one(store)
            clock.advance(seconds=61)
            await store.upkeep.rescue()
        await store.jobs.settle(OWNER, [crashed(await claim_one(store))])
        assert await status_of(store, job_id) is Status.DEAD_LETTER

    async def test_handed_back_spends_nothing(self, store: Store) -> None:
        lease = await running(store)
        assert await store.jobs.settle(OWNER, [handed_back(lease)]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.error) == (Status.QUEUED, None)
        assert (job.attempts, job.snoozes, job.rescues) == (0, 0, 0)
        [execution] = await store.reader.executions(lease.id)
        assert execution.status == "interrupted"

    async def test_handed_back_before_it_started_leaves_no_execution(self, store: Store) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        await store.jobs.settle(OWNER, [handed_back(lease, started=False)])
        assert await store.reader.executions(lease.id) == []
        assert await status_of(store, lease.id) is Status.QUEUED

    @pytest.mark.parametrize(
        "ending", [completed, failed, snoozed, cancelled, buried, crashed, handed_back]
    )
    async def test_every_ending_lets_the_lease_go(self, store: Store, ending: Ending) -> None:
        lease = await running(store)
        assert await store.jobs.settle(OWNER, [ending(lease)]) == []
        job = await job_of(store, lease.id)
        assert (job.lease_owner, job.lease_until) == (None, None)
        assert await store.upkeep.rescue(owner=OWNER) == []


class TestSettlingInBatches:
    """A batch is many settlements, each on its own."""

    async def test_all_kinds_settle_together(self, store: Store) -> None:
        endings: list[Ending] = [
            completed,
            failed,
            snoozed,
            cancelled,
            buried,
            crashed,
            handed_back,
        ]
        await store.jobs.enqueue([a_job() for _ in endings])
        leases = await claim_all(store)
        settlements = [ending(lease) for ending, lease in zip(endings, leases, strict=True)]
        assert await store.jobs.settle(OWNER, settlements) == []
        jobs = await store.reader.get([lease.id for lease in leases])
        assert [job.status for job in jobs] == [
            Status.COMPLETED,
            Status.FAILED,
            Status.PENDING,
            Status.CANCELLED,
            Status.DEAD_LETTER,
            Status.QUEUED,
            Status.QUEUED,
        ]

    async def test_a_stale_one_does_not_hold_up_the_others(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(4)])
        [lost] = await claim_all(store, limit=1)
        await store.upkeep.rescue(owner=OWNER)
        await claim_all(store, owner=OTHER, limit=1)
        leases = [lost, *await claim_all(store)]
        assert await store.jobs.settle(OWNER, [completed(lease) for lease in leases]) == [lost.id]
        done = await store.reader.get([lease.id for lease in leases if lease is not lost])
        assert {job.status for job in done} == {Status.COMPLETED}
        assert (await job_of(store, lost.id)).lease_owner == OTHER

    async def test_no_settlements_are_settled_without_a_word(self, store: Store) -> None:
        assert await store.jobs.settle(OWNER, []) == []


class TestReport:
    """What a running execution tells meanwhile."""

    async def test_progress_checkpoint_and_logs_are_kept(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        told = Report(
            id=lease.id,
            fence=lease.fence,
            progress_percent=40.0,
            progress_message="half way",
            checkpoint='{"page":3}',
            logs=[(clock.now(), "info", "one"), (clock.now() + 1, "error", "two")],
        )
        assert await store.jobs.report(OWNER, [told]) == []
        job = await job_of(store, lease.id)
        assert (job.progress_percent, job.progress_message) == (40.0, "half way")
        assert job.checkpoint == '{"page":3}'
        lines = await store.reader.logs(lease.id)
        assert [(line.fence, line.level, line.message) for line in lines] == [
            (lease.fence, "info", "one"),
            (lease.fence, "error", "two"),
        ]

    async def test_what_is_not_told_stays(self, store: Store) -> None:
        lease = await running(store)
        first = Report(id=lease.id, fence=lease.fence, progress_percent=10.0, checkpoint="1")
        await store.jobs.report(OWNER, [first])
        second = Report(id=lease.id, fence=lease.fence, progress_message="on")
        await store.jobs.report(OWNER, [second])
        job = await job_of(store, lease.id)
        assert (job.progress_percent, job.progress_message, job.checkpoint) == (10.0, "on", "1")

    async def test_progress_as_an_object_is_kept_until_it_is_a_number(self, store: Store) -> None:
        lease = await running(store)
        about: dict[str, Any] = {"id": lease.id, "fence": lease.fence}
        told = Report(**about, progress_percent=10.0, progress='{"phase":"load","percent":10}')
        await store.jobs.report(OWNER, [told])
        await store.jobs.report(OWNER, [Report(**about, checkpoint="1")])
        job = await job_of(store, lease.id)
        assert (job.progress_percent, job.progress) == (10.0, '{"phase":"load","percent":10}')
        await store.jobs.report(OWNER, [Report(**about, progress='{"batch":2}')])
        job = await job_of(store, lease.id)
        assert (job.progress_percent, job.progress) == (10.0, '{"batch":2}')
        await store.jobs.report(OWNER, [Report(**about, progress_percent=50.0)])
        job = await job_of(store, lease.id)
        assert (job.progress_percent, job.progress) == (50.0, None)

    async def test_an_object_of_the_last_execution_is_cleared(self, store: Store) -> None:
        lease = await running(store)
        told = Report(id=lease.id, fence=lease.fence, progress='{"batch":2}')
        await store.jobs.report(OWNER, [told])
        await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
        assert (await job_of(store, lease.id)).progress == '{"batch":2}'
        await claim_one(store)
        assert (await job_of(store, lease.id)).progress is None

    async def test_a_checkpoint_survives_a_retry_and_progress_does_not(self, store: Store) -> None:
        lease = await running(store)
        told = Report(id=lease.id, fence=lease.fence, progress_percent=90.0, checkpoint="[7]")
        await store.jobs.report(OWNER, [told])
        await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
        again = await claim_one(store, owner=OTHER)
        assert again.checkpoint == "[7]"
        assert (await job_of(store, lease.id)).progress_percent is None
