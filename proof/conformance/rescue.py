"""Rescue: leases are taken away, and the innocent are not punished."""

from penstock.model.states import Status
from penstock.store.contract import Fate, Rescued, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_job,
    claim_all,
    claim_one,
    completed,
    enqueue,
    job_of,
    running,
    status_of,
)


class TestRescue:
    """Leases that ran out."""

    async def test_a_lease_that_holds_is_left_alone(self, store: Store, clock: FakeClock) -> None:
        await running(store)
        clock.advance(seconds=59)
        assert await store.upkeep.rescue() == []

    async def test_a_job_that_was_running_counts_a_rescue(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        clock.advance(seconds=61)
        answer = await store.upkeep.rescue()
        assert answer == [Rescued(lease.id, "work", OWNER, Fate.RESCUED)]
        job = await job_of(store, lease.id)
        assert (job.status, job.attempts, job.rescues) == (Status.QUEUED, 0, 1)
        assert (job.lease_owner, job.lease_until, job.started_at) == (None, None, None)
        assert (await claim_one(store, owner=OTHER)).rescues == 1

    async def test_the_lost_execution_is_kept(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        clock.advance(seconds=61)
        await store.upkeep.rescue()
        [execution] = await store.reader.executions(lease.id)
        assert (execution.status, execution.fence) == ("lost", lease.fence)
        assert (execution.started_at, execution.ended_at) == (lease.started_at, clock.now())
        assert execution.worker == OWNER
        assert execution.error is not None

    async def test_a_prefetched_job_goes_back_untouched(
        self, store: Store, clock: FakeClock
    ) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        clock.advance(seconds=61)
        answer = await store.upkeep.rescue()
        assert answer == [Rescued(lease.id, "work", OWNER, Fate.UNTOUCHED)]
        job = await job_of(store, lease.id)
        assert (job.status, job.attempts, job.rescues) == (Status.QUEUED, 0, 0)
        assert job.error is None
        assert await store.reader.executions(lease.id) == []

    async def test_a_prefetched_job_that_was_started_since_counts(
        self, store: Store, clock: FakeClock
    ) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        await store.jobs.start(OWNER, [(lease.id, lease.fence)])
        clock.advance(seconds=61)
        assert [lost.fate for lost in await store.upkeep.rescue()] == [Fate.RESCUED]

    async def test_the_third_rescue_is_the_death(self, store: Store, clock: FakeClock) -> None:
        job_id = await enqueue(store)
        fates = []
        for _ in range(3):
            await claim_one(store)
            clock.advance(seconds=61)
            fates += [lost.fate for lost in await store.upkeep.rescue()]
        assert fates == [Fate.RESCUED, Fate.RESCUED, Fate.DEAD]
        job = await job_of(store, job_id)
        assert (job.status, job.attempts, job.rescues) == (Status.DEAD_LETTER, 0, 3)
        assert job.completed_at == job.failed_at == clock.now()
        letter = await store.dead.get(job_id)
        assert letter is not None
        assert (letter.reason, letter.rescues) == ("poison", 3)
        assert len(await store.reader.executions(job_id)) == 3

    async def test_the_limit_of_rescues_can_be_chosen(self, store: Store, clock: FakeClock) -> None:
        await running(store)
        clock.advance(seconds=61)
        assert [lost.fate for lost in await store.upkeep.rescue(max_rescues=1)] == [Fate.DEAD]

    async def test_the_fence_grows_by_one_whatever_the_fate(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.jobs.enqueue([a_job() for _ in range(2)])
        [stopped, prefetched] = await claim_all(store, start=1)
        await store.jobs.cancel([stopped.id], "stop")
        lost = await running(store)
        clock.advance(seconds=61)
        assert len(await store.upkeep.rescue()) == 3
        doomed = await running(store, type="doomed")
        clock.advance(seconds=61)
        await store.upkeep.rescue(max_rescues=1)
        leases = [stopped, prefetched, lost, doomed]
        jobs = await store.reader.get([lease.id for lease in leases])
        assert [job.fence for job in jobs] == [lease.fence + 1 for lease in leases]

    async def test_a_second_rescue_finds_nothing(self, store: Store, clock: FakeClock) -> None:
        await store.jobs.enqueue([a_job() for _ in range(3)])
        await claim_all(store, start=2)
        clock.advance(seconds=61)
        assert len(await store.upkeep.rescue()) == 3
        assert await store.upkeep.rescue() == []

    async def test_a_pass_does_a_bounded_amount(self, store: Store, clock: FakeClock) -> None:
        await store.jobs.enqueue([a_job() for _ in range(5)])
        await claim_all(store)
        clock.advance(seconds=61)
        assert [len(await store.upkeep.rescue(limit=2)) for _ in range(4)] == [2, 2, 1, 0]

    async def test_settled_jobs_are_never_rescued(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        clock.advance(seconds=61)
        assert await store.upkeep.rescue() == []
        assert await status_of(store, lease.id) is Status.COMPLETED


class TestNothingComesBackForEver:
    """A job whose worker dies before it could mark the start is convicted in the end."""

    async def test_a_job_that_always_takes_its_worker_along_ends_as_a_dead_letter(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        fates: list[Fate] = []
        while Fate.DEAD not in fates and len(fates) < 20:
            await claim_one(store, start=0)
            clock.advance(seconds=61)
            fates += [lost.fate for lost in await store.upkeep.rescue()]
        assert fates[0] is Fate.UNTOUCHED
        assert await status_of(store, job_id) is Status.DEAD_LETTER

    async def test_a_requeued_job_is_innocent_again(self, store: Store, clock: FakeClock) -> None:
        job_id = await enqueue(store)
        while await status_of(store, job_id) is not Status.DEAD_LETTER:
            await claim_one(store, start=0)
            clock.advance(seconds=61)
            await store.upkeep.rescue()
        await store.jobs.requeue([job_id])
        await claim_one(store, start=0)
        clock.advance(seconds=61)
        assert [lost.fate for lost in await store.upkeep.rescue()] == [Fate.UNTOUCHED]


class TestRescueByOwner:
    """All leases of a worker known to be dead, without waiting for them to run out."""

    async def test_all_its_leases_are_taken_and_no_others(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(4)])
        mine = await claim_all(store, limit=2, start=1)
        theirs = await claim_all(store, owner=OTHER)
        rescued = await store.upkeep.rescue(owner=OWNER)
        assert {lost.id: lost.fate for lost in rescued} == {
            mine[0].id: Fate.RESCUED,
            mine[1].id: Fate.UNTOUCHED,
        }
        still = await store.reader.get([lease.id for lease in theirs])
        assert {job.status for job in still} == {Status.IN_PROGRESS}

    async def test_a_second_time_finds_nothing(self, store: Store) -> None:
        await running(store)
        assert len(await store.upkeep.rescue(owner=OWNER)) == 1
        assert await store.upkeep.rescue(owner=OWNER) == []

    async def test_an_unknown_owner_has_nothing(self, store: Store) -> None:
        await running(store)
        assert await store.upkeep.rescue(owner="nobody:0:never") == []
