"""What an operator may do to a job: cancel and requeue."""

import pytest

from penstock.model.errors import IllegalTransition
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.contract import Fate, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OTHER,
    OWNER,
    Ending,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    dead_job,
    enqueue,
    failed,
    handed_back,
    job_of,
    picture,
    running,
    snoozed,
    status_of,
)


class TestCancelWaiting:
    """A job nobody runs is cancelled at once."""

    @pytest.mark.parametrize("delay_ms", [0, 5_000])
    async def test_a_waiting_job_is_cancelled(
        self, store: Store, clock: FakeClock, delay_ms: int
    ) -> None:
        job_id = await enqueue(store, delay_ms=delay_ms)
        clock.advance(seconds=1)
        assert await store.jobs.cancel([job_id], "not needed") == {job_id: "cancelled"}
        job = await job_of(store, job_id)
        assert (job.status, job.error) == (Status.CANCELLED, "not needed")
        assert job.completed_at == job.updated_at == clock.now()
        clock.advance(seconds=10)
        assert await claim_all(store) == []

    async def test_a_failed_job_is_cancelled(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [failed(lease)])
        assert await store.jobs.cancel([lease.id], "enough") == {lease.id: "cancelled"}
        clock.advance(seconds=10)
        assert await claim_all(store) == []

    @pytest.mark.parametrize("ending", [completed, cancelled, buried])
    async def test_an_ended_job_does_not_change(self, store: Store, ending: Ending) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [ending(lease)])
        before = await picture(store, lease.id)
        answer = await store.jobs.cancel([lease.id], "too late")
        assert answer == {lease.id: before.job.status.value}
        assert await picture(store, lease.id) == before

    async def test_many_are_answered_each_with_its_status(self, store: Store) -> None:
        busy, waiting = await running(store), await enqueue(store)
        answer = await store.jobs.cancel([waiting, busy.id], "stop")
        assert answer == {waiting: "cancelled", busy.id: "in_progress"}

    async def test_an_unknown_id_is_an_error_and_nothing_is_cancelled(self, store: Store) -> None:
        job_id = await enqueue(store)
        with pytest.raises(JobNotFound):
            await store.jobs.cancel([job_id, NOBODY], "no")
        assert await status_of(store, job_id) is Status.QUEUED


class TestCancelRunning:
    """A running job is asked to stop; it keeps its lease until it settles or is rescued."""

    async def test_it_stays_in_progress_with_the_request_noted(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        clock.advance(seconds=1)
        assert await store.jobs.cancel([lease.id], "stop") == {lease.id: "in_progress"}
        job = await job_of(store, lease.id)
        assert (job.status, job.cancel_requested_at) == (Status.IN_PROGRESS, clock.now())
        assert (job.lease_owner, job.fence) == (OWNER, lease.fence)
        assert await claim_all(store, owner=OTHER) == []

    async def test_the_first_request_is_the_one_that_counts(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        asked = clock.now()
        await store.jobs.cancel([lease.id], "stop")
        clock.advance(seconds=1)
        await store.jobs.cancel([lease.id], "stop")
        assert (await job_of(store, lease.id)).cancel_requested_at == asked

    @pytest.mark.parametrize("ending", [failed, snoozed, cancelled, crashed, handed_back])
    async def test_an_execution_that_would_go_on_ends_as_cancelled(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await running(store)
        await store.jobs.cancel([lease.id], "stop now")
        assert await store.jobs.settle(OWNER, [ending(lease)]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.error) == (Status.CANCELLED, "stop now")
        assert (job.attempts, job.snoozes, job.rescues) == (0, 0, 0)
        assert job.completed_at == clock.now()
        assert [e.status for e in await store.reader.executions(lease.id)] == ["cancelled"]

    async def test_a_value_returned_first_wins(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.cancel([lease.id], "stop")
        assert await store.jobs.settle(OWNER, [completed(lease, "7")]) == []
        job = await job_of(store, lease.id)
        assert (job.status, job.result) == (Status.COMPLETED, "7")

    async def test_a_third_crash_ends_as_cancelled_too(self, store: Store) -> None:
        job_id = await enqueue(store)
        for _ in range(2):
            await store.jobs.settle(OWNER, [crashed(await claim_one(store))])
        lease = await claim_one(store)
        await store.jobs.cancel([job_id], "stop")
        assert await store.jobs.settle(OWNER, [crashed(lease)]) == []
        assert await status_of(store, job_id) is Status.CANCELLED
        assert await store.dead.get(job_id) is None

    @pytest.mark.parametrize("start", [0, 1])
    async def test_a_rescue_ends_it_as_cancelled(
        self, store: Store, clock: FakeClock, start: int
    ) -> None:
        job_id = await enqueue(store)
        await claim_one(store, start=start, limit=1)
        await store.jobs.cancel([job_id], "stop")
        clock.advance(seconds=61)
        assert [lost.fate for lost in await store.upkeep.rescue()] == [Fate.CANCELLED]
        job = await job_of(store, job_id)
        assert (job.status, job.error, job.rescues) == (Status.CANCELLED, "stop", 0)


class TestRequeue:
    """A requeue gives cancelled and dead jobs a fresh budget."""

    async def test_a_dead_job_starts_afresh(self, store: Store, clock: FakeClock) -> None:
        job_id = await dead_job(store, max_retries=2, payload='{"n":1}')
        clock.advance(seconds=5)
        assert await store.jobs.requeue([job_id]) == [job_id]
        job = await job_of(store, job_id)
        assert job.status is Status.PENDING
        assert (job.attempts, job.snoozes, job.rescues, job.max_retries) == (0, 0, 0, 2)
        assert (job.error, job.error_details) == (None, None)
        assert (job.completed_at, job.failed_at) == (None, None)
        assert (job.payload, job.scheduled_at) == ('{"n":1}', clock.now())
        assert (await claim_one(store)).id == job_id

    async def test_a_cancelled_job_starts_afresh(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.cancel([lease.id], "stop")
        await store.jobs.settle(OWNER, [failed(lease)])
        await store.jobs.requeue([lease.id])
        assert (await job_of(store, lease.id)).cancel_requested_at is None
        again = await claim_one(store)
        await store.jobs.settle(OWNER, [failed(again)])
        assert await status_of(store, lease.id) is Status.FAILED

    async def test_the_fence_goes_on_counting(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [buried(lease)])
        fence = (await job_of(store, lease.id)).fence
        await store.jobs.requeue([lease.id])
        assert (await job_of(store, lease.id)).fence == fence
        again = await claim_one(store)
        assert again.fence == fence + 1
        before = await picture(store, lease.id)
        await store.jobs.settle(OWNER, [completed(lease)])
        assert await picture(store, lease.id) == before

    async def test_earlier_executions_are_kept(self, store: Store) -> None:
        job_id = await dead_job(store)
        await store.jobs.requeue([job_id])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        executions = await store.reader.executions(job_id)
        assert [e.status for e in executions] == ["dead", "completed"]

    async def test_an_expired_job_may_run_after_all(self, store: Store, clock: FakeClock) -> None:
        job_id = await enqueue(store, expires_in_ms=10)
        clock.advance(seconds=1)
        await store.upkeep.expire()
        await store.jobs.requeue([job_id])
        assert (await claim_one(store)).id == job_id

    async def test_a_requeued_job_dies_and_is_requeued_again(self, store: Store) -> None:
        job_id = await dead_job(store)
        await store.jobs.requeue([job_id])
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        assert await store.jobs.requeue([job_id]) == [job_id]

    async def test_a_completed_job_is_refused(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        with pytest.raises(IllegalTransition):
            await store.jobs.requeue([lease.id])
        assert await status_of(store, lease.id) is Status.COMPLETED

    @pytest.mark.parametrize("delay_ms", [0, 5_000])
    async def test_a_waiting_job_is_refused(self, store: Store, delay_ms: int) -> None:
        job_id = await enqueue(store, delay_ms=delay_ms)
        before = await picture(store, job_id)
        with pytest.raises(IllegalTransition):
            await store.jobs.requeue([job_id])
        assert await picture(store, job_id) == before

    async def test_a_running_or_failed_job_is_refused(self, store: Store) -> None:
        lease = await running(store)
        with pytest.raises(IllegalTransition):
            await store.jobs.requeue([lease.id])
        await store.jobs.settle(OWNER, [failed(lease)])
        with pytest.raises(IllegalTransition):
            await store.jobs.requeue([lease.id])

    async def test_an_unknown_id_is_an_error_and_nothing_is_requeued(self, store: Store) -> None:
        job_id = await dead_job(store)
        with pytest.raises(JobNotFound):
            await store.jobs.requeue([job_id, NOBODY])
        assert await status_of(store, job_id) is Status.DEAD_LETTER
