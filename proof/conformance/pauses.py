"""Pauses: of a queue, a type, a tenant, and of one job."""

import pytest

from penstock.model.controls import PauseScope
from penstock.model.errors import IllegalTransition
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OWNER,
    Ending,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    enqueue,
    enqueue_after,
    failed,
    job_of,
    picture,
    running,
    status_of,
)

FIELDS = {PauseScope.QUEUE: "queue", PauseScope.TYPE: "type", PauseScope.TENANT: "tenant_id"}
MANY = list(FIELDS)
TYPES = ("work", "held")


class TestPauses:
    """A paused queue, type or tenant keeps its jobs; everybody else goes on."""

    @pytest.mark.parametrize("scope", MANY)
    async def test_nothing_of_it_is_claimed_and_all_else_is(
        self, store: Store, scope: PauseScope
    ) -> None:
        await store.controls.pause(scope, "held")
        kept = await enqueue(store, **{FIELDS[scope]: "held"})
        free = await enqueue(store)
        assert [lease.id for lease in await claim_all(store, types=TYPES)] == [free]
        assert await status_of(store, kept) is Status.QUEUED

    @pytest.mark.parametrize("scope", MANY)
    async def test_what_runs_already_runs_on(self, store: Store, scope: PauseScope) -> None:
        lease = await running(store, **{FIELDS[scope]: "held"})
        await store.controls.pause(scope, "held")
        assert await store.jobs.settle(OWNER, [completed(lease)]) == []
        assert await status_of(store, lease.id) is Status.COMPLETED

    @pytest.mark.parametrize("scope", MANY)
    async def test_a_resume_keeps_times_and_order(
        self, store: Store, clock: FakeClock, scope: PauseScope
    ) -> None:
        await store.controls.pause(scope, "held")
        jobs = []
        for priority in (5, 5, 1):
            jobs.append(await enqueue(store, priority=priority, **{FIELDS[scope]: "held"}))
            clock.advance(seconds=1)
        before = [await job_of(store, job_id) for job_id in jobs]
        clock.advance(seconds=3600)
        assert await store.controls.resume(scope, "held")
        assert [await job_of(store, job_id) for job_id in jobs] == before
        first, second, urgent = jobs
        leases = await claim_all(store, types=TYPES)
        assert [lease.id for lease in leases] == [urgent, first, second]

    async def test_a_failed_job_of_a_paused_type_waits_for_its_retry(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        await store.controls.pause(PauseScope.TYPE, "work")
        await store.jobs.settle(OWNER, [failed(lease)])
        clock.advance(seconds=10)
        assert await claim_all(store) == []
        await store.controls.resume(PauseScope.TYPE, "work")
        assert (await claim_one(store)).id == lease.id

    async def test_a_job_held_by_two_pauses_waits_for_both(self, store: Store) -> None:
        await store.controls.pause(PauseScope.QUEUE, "default")
        await store.controls.pause(PauseScope.TYPE, "work")
        job_id = await enqueue(store)
        await store.controls.resume(PauseScope.QUEUE, "default")
        assert await claim_all(store) == []
        await store.controls.resume(PauseScope.TYPE, "work")
        assert (await claim_one(store)).id == job_id

    async def test_a_pause_says_who_when_and_why_and_the_first_one_stays(
        self, store: Store, clock: FakeClock
    ) -> None:
        at = clock.now()
        await store.controls.pause(PauseScope.QUEUE, "mail", reason="deploy", by="ada")
        clock.advance(seconds=1)
        again = await store.controls.pause(PauseScope.QUEUE, "mail", reason="lunch", by="bob")
        assert (again.reason, again.paused_by, again.created_at) == ("deploy", "ada", at)
        await store.controls.pause(PauseScope.TENANT, "acme")
        names = [(pause.scope, pause.name) for pause in await store.controls.pauses()]
        assert names == [(PauseScope.QUEUE, "mail"), (PauseScope.TENANT, "acme")]

    async def test_resuming_what_is_not_paused_changes_nothing(self, store: Store) -> None:
        assert not await store.controls.resume(PauseScope.QUEUE, "mail")

    async def test_secrets_in_a_reason_are_not_kept(self, store: Store) -> None:
        pause = await store.controls.pause(
            PauseScope.QUEUE, "mail", reason="password=hunter2hunter2"
        )
        assert "hunter2" not in (pause.reason or "")

    async def test_a_pause_outlives_the_process(self, store: Store) -> None:
        await store.controls.pause(PauseScope.QUEUE, "default")
        job_id = await enqueue(store)
        assert await store.upkeep.stage() == 0
        assert await claim_all(store) == []
        assert await status_of(store, job_id) is Status.QUEUED


class TestPausedJobs:
    """One job is taken out of the queue, and goes back to its own place."""

    async def test_a_queued_job_waits_until_it_is_resumed(
        self, store: Store, clock: FakeClock
    ) -> None:
        first, second = await enqueue(store), await enqueue(store)
        await store.controls.pause(PauseScope.JOB, first)
        assert await status_of(store, first) is Status.PAUSED
        clock.advance(seconds=60)
        await store.controls.resume(PauseScope.JOB, first)
        assert [lease.id for lease in await claim_all(store)] == [first, second]
        assert await store.controls.pauses() == []

    async def test_a_delayed_job_keeps_its_time(self, store: Store, clock: FakeClock) -> None:
        job_id = await enqueue(store, delay_ms=10_000)
        due = (await job_of(store, job_id)).scheduled_at
        await store.controls.pause(PauseScope.JOB, job_id)
        clock.advance(seconds=5)
        await store.controls.resume(PauseScope.JOB, job_id)
        assert (await job_of(store, job_id)).scheduled_at == due
        assert await claim_all(store) == []
        clock.advance(seconds=5)
        assert (await claim_one(store)).id == job_id

    async def test_a_job_whose_time_comes_while_it_is_paused_stays(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store, delay_ms=1_000)
        await store.controls.pause(PauseScope.JOB, job_id)
        clock.advance(seconds=60)
        await store.upkeep.stage()
        assert await claim_all(store) == []
        assert await status_of(store, job_id) is Status.PAUSED

    async def test_a_failed_job_goes_on_with_its_attempts(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [failed(lease)])
        await store.controls.pause(PauseScope.JOB, lease.id)
        await store.controls.resume(PauseScope.JOB, lease.id)
        assert await claim_all(store) == []
        clock.advance(seconds=1)
        assert (await claim_one(store)).attempts == 1

    async def test_a_paused_job_keeps_its_key(self, store: Store) -> None:
        job_id = await enqueue(store, key="only-one")
        await store.controls.pause(PauseScope.JOB, job_id)
        assert await enqueue(store, key="only-one") == job_id

    async def test_a_paused_job_is_cancelled_and_its_pause_is_gone(self, store: Store) -> None:
        job_id = await enqueue(store, key="k")
        await store.controls.pause(PauseScope.JOB, job_id)
        assert await store.jobs.cancel([job_id], "no") == {job_id: "cancelled"}
        assert await store.controls.pauses() == []
        assert await enqueue(store, key="k") != job_id
        await store.jobs.cancel([await enqueue(store)], "no")
        assert not await store.controls.resume(PauseScope.JOB, job_id)

    async def test_a_parent_that_ends_meanwhile_is_not_missed(self, store: Store) -> None:
        parent = await enqueue(store)
        child = await enqueue_after(store, parent)
        await store.controls.pause(PauseScope.JOB, child)
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert await claim_all(store) == []
        await store.controls.resume(PauseScope.JOB, child)
        assert (await claim_one(store)).id == child

    async def test_pausing_twice_and_resuming_twice_does_no_harm(self, store: Store) -> None:
        job_id = await enqueue(store)
        await store.controls.pause(PauseScope.JOB, job_id, reason="first")
        assert (await store.controls.pause(PauseScope.JOB, job_id)).reason == "first"
        assert await store.controls.resume(PauseScope.JOB, job_id)
        assert not await store.controls.resume(PauseScope.JOB, job_id)
        assert (await claim_one(store)).id == job_id

    async def test_a_running_job_is_not_paused(self, store: Store) -> None:
        lease = await running(store)
        with pytest.raises(IllegalTransition):
            await store.controls.pause(PauseScope.JOB, lease.id)
        assert await store.controls.pauses() == []

    @pytest.mark.parametrize("ending", [completed, cancelled, buried])
    async def test_an_ended_job_is_not_paused(self, store: Store, ending: Ending) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [ending(lease)])
        before = await picture(store, lease.id)
        with pytest.raises(IllegalTransition):
            await store.controls.pause(PauseScope.JOB, lease.id)
        assert await picture(store, lease.id) == before

    async def test_an_unknown_job_is_an_error(self, store: Store) -> None:
        with pytest.raises(JobNotFound):
            await store.controls.pause(PauseScope.JOB, NOBODY)
        with pytest.raises(JobNotFound):
            await store.controls.resume(PauseScope.JOB, NOBODY)
        assert await store.controls.pauses() == []
