"""Upkeep: leadership, staging, expiry and pruning."""

import pytest

from penstock.model.job import KeyScope
from penstock.model.options import FOREVER_MS
from penstock.model.states import Status
from penstock.store.contract import JobFilter, Pruned, Report, Resolution, Retention, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OTHER,
    OWNER,
    Ending,
    a_job,
    buried,
    cancelled,
    claim_all,
    completed,
    dead_job,
    enqueue,
    failed,
    job_of,
    running,
    snoozed,
    status_of,
)

DAY = 86_400
HOUR_MS = 3_600_000


class TestLeadership:
    """One leader per role, for a term."""

    async def test_it_is_taken_once(self, store: Store) -> None:
        assert await store.upkeep.lead("upkeep", OWNER, 1_000)
        assert not await store.upkeep.lead("upkeep", OTHER, 1_000)

    async def test_the_leader_keeps_it_by_asking_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        for _ in range(5):
            assert await store.upkeep.lead("upkeep", OWNER, 1_000)
            clock.advance(seconds=0.9)
            assert not await store.upkeep.lead("upkeep", OTHER, 1_000)

    async def test_it_lapses_with_its_term(self, store: Store, clock: FakeClock) -> None:
        await store.upkeep.lead("upkeep", OWNER, 1_000)
        clock.advance(seconds=1.001)
        assert await store.upkeep.lead("upkeep", OTHER, 1_000)
        assert not await store.upkeep.lead("upkeep", OWNER, 1_000)

    async def test_moving_the_wall_clock_does_not_end_a_term(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.upkeep.lead("upkeep", OWNER, 1_000)
        clock.set_wall("2040-01-01T00:00:00Z")
        assert not await store.upkeep.lead("upkeep", OTHER, 1_000)

    async def test_a_resignation_frees_it_at_once(self, store: Store) -> None:
        await store.upkeep.lead("upkeep", OWNER, 1_000)
        await store.upkeep.resign("upkeep", OWNER)
        assert await store.upkeep.lead("upkeep", OTHER, 1_000)

    async def test_nobody_resigns_for_another(self, store: Store) -> None:
        await store.upkeep.lead("upkeep", OWNER, 1_000)
        await store.upkeep.resign("upkeep", OTHER)
        assert not await store.upkeep.lead("upkeep", OTHER, 1_000)

    async def test_each_role_has_a_leader_of_its_own(self, store: Store) -> None:
        assert await store.upkeep.lead("a", OWNER, 1_000)
        assert await store.upkeep.lead("b", OTHER, 1_000)


class TestStage:
    """Waiting jobs are queued when they fall due."""

    async def test_a_job_is_staged_when_due_and_not_before(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store, delay_ms=1_000)
        clock.advance(seconds=0.999)
        assert await store.upkeep.stage() == 0
        clock.advance(seconds=0.001)
        assert await store.upkeep.stage() == 1
        job = await job_of(store, job_id)
        assert (job.status, job.queued_at) == (Status.QUEUED, clock.now())
        assert await store.upkeep.stage() == 0

    @pytest.mark.parametrize("ending", [failed, snoozed])
    async def test_failed_and_snoozed_jobs_are_staged_too(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [ending(lease)])
        clock.advance(seconds=1)
        assert await store.upkeep.stage() == 1
        assert await status_of(store, lease.id) is Status.QUEUED

    async def test_a_pass_does_a_bounded_amount(self, store: Store, clock: FakeClock) -> None:
        await store.jobs.enqueue([a_job(delay_ms=1_000) for _ in range(5)])
        clock.advance(seconds=1)
        assert [await store.upkeep.stage(limit=2) for _ in range(4)] == [2, 2, 1, 0]

    async def test_staged_jobs_are_ranked_by_the_time_they_fell_due(
        self, store: Store, clock: FakeClock
    ) -> None:
        later = await enqueue(store, delay_ms=2_000)
        sooner = await enqueue(store, delay_ms=1_000)
        clock.advance(seconds=5)
        assert [lease.id for lease in await claim_all(store)] == [sooner, later]


class TestExpiry:
    """A job nobody needs any more becomes a dead letter instead of running."""

    @pytest.mark.parametrize("delay_ms", [0, 9_000])
    async def test_a_waiting_job_past_its_expiry_is_dead(
        self, store: Store, clock: FakeClock, delay_ms: int
    ) -> None:
        job_id = await enqueue(store, delay_ms=delay_ms, expires_in_ms=5_000)
        clock.advance(seconds=4.999)
        assert await store.upkeep.expire() == []
        clock.advance(seconds=0.002)
        assert await store.upkeep.expire() == [job_id]
        job = await job_of(store, job_id)
        assert job.status is Status.DEAD_LETTER
        assert job.completed_at == clock.now()
        assert (job.attempts, job.error is None) == (0, False)
        letter = await store.dead.get(job_id)
        assert letter is not None
        assert letter.error_code == "Expired"

    async def test_a_failed_job_past_its_expiry_is_dead(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store, expires_in_ms=5_000)
        await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=10_000)])
        clock.advance(seconds=6)
        assert await store.upkeep.expire() == [lease.id]

    async def test_a_job_that_expired_before_it_was_due_to_be_staged_is_never_queued(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store, delay_ms=1_000, expires_in_ms=2_000)
        clock.advance(seconds=3)
        assert await claim_all(store) == []
        job = await job_of(store, job_id)
        assert (job.status, job.queued_at) == (Status.DEAD_LETTER, None)

    async def test_an_expired_job_is_never_claimed(self, store: Store, clock: FakeClock) -> None:
        await store.jobs.enqueue([a_job(expires_in_ms=1_000) for _ in range(300)])
        await enqueue(store, expires_in_ms=1_000, delay_ms=500)
        clock.advance(seconds=2)
        for _ in range(3):
            assert await claim_all(store) == []

    async def test_a_running_job_does_not_expire(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store, expires_in_ms=1_000)
        clock.advance(seconds=2)
        assert await store.upkeep.expire() == []
        assert await store.jobs.settle(OWNER, [completed(lease)]) == []
        assert await status_of(store, lease.id) is Status.COMPLETED

    async def test_an_ended_job_does_not_expire(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store, expires_in_ms=1_000)
        await store.jobs.settle(OWNER, [completed(lease)])
        clock.advance(seconds=2)
        assert await store.upkeep.expire() == []

    async def test_a_pass_does_a_bounded_amount(self, store: Store, clock: FakeClock) -> None:
        await store.jobs.enqueue([a_job(expires_in_ms=10) for _ in range(5)])
        clock.advance(seconds=1)
        assert [len(await store.upkeep.expire(limit=2)) for _ in range(4)] == [2, 2, 1, 0]


class TestPrune:
    """Ended jobs are deleted past their retention, with their history."""

    async def test_each_status_has_a_retention_of_its_own(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = []
        for ending in (completed, cancelled, buried):
            lease = await running(store)
            await store.jobs.settle(OWNER, [ending(lease)])
            ids.append(lease.id)
        days = {Status.COMPLETED: 1, Status.CANCELLED: 2, Status.DEAD_LETTER: 3}
        retention = Retention(keep_ms={s: n * DAY * 1000 for s, n in days.items()})
        left = []
        for _ in range(4):
            await store.upkeep.prune(retention)
            left.append(len(await store.reader.get(ids)))
            clock.advance(seconds=DAY + 1)
        assert left == [3, 2, 1, 0]

    async def test_a_status_that_is_not_named_is_kept(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [buried(lease)])
        clock.advance(seconds=1_000 * DAY)
        pruned = await store.upkeep.prune(Retention(keep_ms={Status.COMPLETED: 0}))
        assert (pruned.jobs, pruned.more) == (0, False)

    async def test_a_job_may_say_how_long_it_is_kept(self, store: Store, clock: FakeClock) -> None:
        asked: dict[str, dict[str, int]] = {
            "at once": {"keep_completed": 0},
            "an hour": {"keep_completed": HOUR_MS},
            "for good": {"keep_completed": FOREVER_MS},
            "if it fails": {"keep_failed": 0},
        }
        ids = {}
        for name, fields in asked.items():
            ids[name] = (lease := await running(store, **fields)).id
            await store.jobs.settle(OWNER, [completed(lease)])
        left = []
        for seconds in (0, 3_601, 8 * DAY):
            clock.advance(seconds=seconds)
            await store.upkeep.prune(Retention())
            found = {job.id for job in await store.reader.get(list(ids.values()))}
            left.append({name for name, job_id in ids.items() if job_id in found})
        assert left == [
            {"an hour", "for good", "if it fails"},
            {"for good", "if it fails"},
            {"for good"},
        ]

    async def test_dead_letters_say_it_for_themselves(self, store: Store, clock: FakeClock) -> None:
        gone = await running(store, keep_failed=0, keep_completed=FOREVER_MS)
        stays = await running(store, keep_failed=FOREVER_MS, keep_completed=0)
        await store.jobs.settle(OWNER, [buried(gone), buried(stays)])
        clock.advance(seconds=91 * DAY)
        assert (await store.upkeep.prune(Retention())).jobs == 1
        assert [letter.job_id for letter in await store.dead.find()] == [stays.id]
        assert [job.id for job in await store.reader.get([gone.id, stays.id])] == [stays.id]

    async def test_at_most_so_many_of_a_type_are_kept(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for type_ in ("a", "a", "a", "b"):
            ids.append((lease := await running(store, type=type_, keep_completed=-2)).id)
            await store.jobs.settle(OWNER, [completed(lease)])
            clock.advance(seconds=1)
        await store.upkeep.prune(Retention())
        assert [job.id for job in await store.reader.get(ids)] == ids[1:]

    async def test_a_job_that_lives_again_is_not_removed(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = []
        for keep in (0, -1):
            ids.append((lease := await running(store, keep_failed=keep)).id)
            await store.jobs.settle(OWNER, [buried(lease)])
        await store.jobs.requeue(ids)
        clock.advance(seconds=DAY)
        assert (await store.upkeep.prune(Retention())).jobs == 0
        assert [job.id for job in await store.reader.get(ids)] == ids

    async def test_what_somebody_keeps_elsewhere_is_not_removed(self, store: Store) -> None:
        lease = await running(store, keep_completed=0)
        await store.jobs.settle(OWNER, [completed(lease)])
        assert (await store.upkeep.prune(Retention(keep_ms={}))).jobs == 0
        assert await store.upkeep.prunable(Retention()) == [lease.id]

    async def test_the_history_goes_too(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store)
        told = Report(id=lease.id, fence=lease.fence, logs=[(0, "info", "hello")])
        await store.jobs.report(OWNER, [told])
        await store.jobs.settle(OWNER, [buried(lease)])
        clock.advance(seconds=91 * DAY)
        assert (await store.upkeep.prune(Retention())).jobs == 1
        assert await store.reader.get([lease.id]) == []
        assert await store.reader.executions(lease.id) == []
        assert await store.reader.logs(lease.id) == []
        assert await store.dead.get(lease.id) is None

    async def test_closed_dead_letters_go_a_while_after_they_were_closed(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = [await dead_job(store) for _ in range(5)]
        early, late, ignored, requeued, left_open = ids
        clock.advance(seconds=DAY)
        await store.dead.resolve([early], Resolution.RESOLVED, notes=None, by="ann")
        await store.dead.resolve([ignored], Resolution.IGNORED, notes=None, by="ann")
        await store.dead.resolve([left_open], Resolution.INVESTIGATING, notes=None, by="ann")
        await store.jobs.requeue([requeued])
        clock.advance(seconds=DAY)
        await store.dead.resolve([late], Resolution.RESOLVED, notes=None, by="ann")
        clock.advance(seconds=29 * DAY + 1)
        assert (await store.upkeep.prune(Retention(), limit=2)) == Pruned(2, more=True)
        assert (await store.upkeep.prune(Retention(), limit=2)) == Pruned(1, more=False)
        assert {job.id for job in await store.reader.get(ids)} == {late, requeued, left_open}
        assert {letter.job_id for letter in await store.dead.find()} == {late, left_open}
        assert await status_of(store, requeued) is not Status.DEAD_LETTER
        clock.advance(seconds=DAY)
        assert (await store.upkeep.prune(Retention())).jobs == 1
        assert [letter.job_id for letter in await store.dead.find()] == [left_open]

    async def test_jobs_that_have_not_ended_are_never_pruned(
        self, store: Store, clock: FakeClock
    ) -> None:
        busy = await running(store)
        await enqueue(store)
        await enqueue(store, delay_ms=10**12)
        clock.advance(seconds=10_000 * DAY)
        assert (await store.upkeep.prune(Retention())).jobs == 0
        assert await status_of(store, busy.id) is Status.IN_PROGRESS
        assert len(await store.reader.find(JobFilter())) == 3

    async def test_the_last_of_a_type_are_spared(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for _ in range(5):
            lease = await running(store)
            await store.jobs.settle(OWNER, [completed(lease)])
            ids.append(lease.id)
            clock.advance(seconds=1)
        other = await running(store, type="other")
        await store.jobs.settle(OWNER, [completed(other)])
        clock.advance(seconds=8 * DAY)
        await store.upkeep.prune(Retention(keep_last={"work": 2}))
        left = await store.reader.get([*ids, other.id])
        assert [job.id for job in left] == ids[-2:]

    async def test_a_pass_does_a_bounded_amount_and_says_when_more_waits(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.jobs.enqueue([a_job() for _ in range(5)])
        await store.jobs.settle(OWNER, [completed(lease) for lease in await claim_all(store)])
        clock.advance(seconds=8 * DAY)
        passes = [await store.upkeep.prune(Retention(), limit=2) for _ in range(3)]
        assert [pruned.jobs for pruned in passes] == [2, 2, 1]
        assert [pruned.more for pruned in passes] == [True, True, False]

    async def test_spared_jobs_do_not_stand_in_the_way_of_others(
        self, store: Store, clock: FakeClock
    ) -> None:
        for type_ in ("rare", "rare", "work", "work", "work"):
            lease = await running(store, type=type_)
            await store.jobs.settle(OWNER, [completed(lease)])
            clock.advance(seconds=1)
        clock.advance(seconds=8 * DAY)
        retention = Retention(keep_last={"rare": 2})
        for _ in range(3):
            await store.upkeep.prune(retention, limit=1)
        left = await store.reader.find(JobFilter())
        assert [job.type for job in left] == ["rare", "rare"]

    async def test_what_is_past_its_retention_can_be_asked_for_first(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = []
        for ending in (completed, completed, cancelled, buried):
            lease = await running(store)
            await store.jobs.settle(OWNER, [ending(lease)])
            ids.append(lease.id)
            clock.advance(seconds=1)
        clock.advance(seconds=8 * DAY)
        assert sorted(await store.upkeep.prunable(Retention())) == sorted(ids[:3])
        assert await store.upkeep.prunable(Retention(keep_ms={Status.COMPLETED: 0}), 1) == ids[:1]
        spared = Retention(keep_ms={Status.COMPLETED: 0}, keep_last={"work": 1})
        assert await store.upkeep.prunable(spared) == ids[:1]
        assert len(await store.reader.get(ids)) == 4

    async def test_of_some_jobs_those_that_ended_before_a_time_are_deleted(
        self, store: Store, clock: FakeClock
    ) -> None:
        early, late = [], []
        for ending in (completed, cancelled, buried):
            lease = await running(store, key=f"of {ending.__name__}", key_scope=KeyScope.FOREVER)
            told = Report(id=lease.id, fence=lease.fence, logs=[(0, "info", "hello")])
            await store.jobs.report(OWNER, [told])
            await store.jobs.settle(OWNER, [ending(lease)])
            early.append(lease.id)
        clock.advance(seconds=10)
        before = clock.now()
        for ending in (completed, buried):
            lease = await running(store)
            await store.jobs.settle(OWNER, [ending(lease)])
            late.append(lease.id)
        busy = await running(store)
        asked = [*early, *late, busy.id, NOBODY]
        assert await store.upkeep.prune_jobs(asked, before) == 3
        assert await store.upkeep.prune_jobs(asked, before) == 0
        assert [job.id for job in await store.reader.get(asked)] == [*late, busy.id]
        assert await store.reader.executions(early[0]) == []
        assert await store.reader.logs(early[0]) == []
        assert [letter.job_id for letter in await store.dead.find()] == late[1:]
        [again] = await store.jobs.enqueue([a_job(key="of completed", key_scope=KeyScope.FOREVER)])
        assert (again.id, again.created) == (early[0], False), "its key outlives it"
