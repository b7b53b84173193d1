"""Followers: every change of a job is recorded once, in the commit that made it."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from penstock.model.controls import PauseScope
from penstock.model.errors import ParentNotFound
from penstock.model.ids import new_id
from penstock.model.schedule import Schedule, ScheduleKind
from penstock.model.states import ALLOWED, TERMINAL, Status
from penstock.store.contract import Retention, Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    LEASE_MS,
    NOBODY,
    OTHER,
    OWNER,
    a_job,
    an_edge,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    dead_job,
    end,
    enqueue,
    enqueue_after,
    failed,
    handed_back,
    running,
    snoozed,
    status_of,
)
from proof.conformance.furnish import copy
from proof.conformance.states import Walk

NAME = "links.ended"
OTHER_NAME = "mail.all"
ALL = tuple(Status)


async def told(store: Store, name: str = NAME) -> list[str]:
    """The statuses that wait to be told, the oldest first."""
    return [change.status.value for change in await store.changes.waiting(name)]


async def told_of(store: Store, job_id: str, name: str = NAME) -> list[str]:
    """The same of one job."""
    waiting = await store.changes.waiting(name)
    return [change.status.value for change in waiting if change.job_id == job_id]


class TestFollowing:
    """Who is told, of what, and for how long."""

    async def test_nothing_is_recorded_without_a_follower(self, store: Store) -> None:
        await store.jobs.settle(OWNER, [completed(await running(store))])
        await store.changes.follow(NAME, ALL)
        assert await told(store) == []

    async def test_a_follower_is_told_of_the_statuses_it_asked_for(self, store: Store) -> None:
        await store.changes.follow(NAME, TERMINAL)
        done, gone = await running(store), await running(store)
        await store.jobs.settle(OWNER, [completed(done), buried(gone)])
        changes = await store.changes.waiting(NAME)
        assert {(change.job_id, change.status) for change in changes} == {
            (done.id, Status.COMPLETED),
            (gone.id, Status.DEAD_LETTER),
        }

    async def test_a_change_says_which_job_came_to_what_and_when(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.changes.follow(NAME, [Status.COMPLETED])
        lease = await running(store, queue='a "b" ☃', tenant_id="acme\\")
        clock.advance(seconds=3)
        await store.jobs.settle(OWNER, [completed(lease)])
        [change] = await store.changes.waiting(NAME)
        assert (change.job_id, change.type) == (lease.id, "work")
        assert (change.queue, change.tenant_id) == ('a "b" ☃', "acme\\")
        assert (change.status, change.fence) == (Status.COMPLETED, lease.fence)
        assert change.at == clock.now()

    async def test_each_follower_has_changes_of_its_own(self, store: Store) -> None:
        await store.changes.follow(NAME, TERMINAL)
        await store.changes.follow(OTHER_NAME, ALL)
        await store.jobs.settle(OWNER, [completed(await running(store))])
        assert await told(store) == ["completed"]
        assert await told(store, OTHER_NAME) == ["queued", "in_progress", "completed"]
        [change] = await store.changes.waiting(NAME)
        await store.changes.confirm(NAME, [change.position])
        assert await told(store) == []
        assert await told(store, OTHER_NAME) == ["queued", "in_progress", "completed"]

    async def test_confirming_forgets_what_was_confirmed_and_no_more(self, store: Store) -> None:
        await store.changes.follow(NAME, [Status.QUEUED])
        for _ in range(3):
            await enqueue(store)
        first, second, third = await store.changes.waiting(NAME)
        await store.changes.confirm(NAME, [first.position, third.position])
        assert await store.changes.waiting(NAME) == [second]
        await store.changes.confirm(NAME, [first.position])
        await store.changes.confirm(NAME, [])
        assert await store.changes.waiting(NAME) == [second]

    async def test_what_comes_later_is_not_confirmed_by_what_was_told_before(
        self, store: Store
    ) -> None:
        await store.changes.follow(NAME, [Status.QUEUED])
        await enqueue(store)
        [change] = await store.changes.waiting(NAME)
        await store.changes.confirm(NAME, [change.position])
        await enqueue(store)
        await store.changes.confirm(NAME, [change.position])
        assert await told(store) == ["queued"]

    async def test_the_oldest_come_first_and_only_so_many(self, store: Store) -> None:
        await store.changes.follow(NAME, [Status.QUEUED])
        ids = [await enqueue(store) for _ in range(3)]
        changes = await store.changes.waiting(NAME, 2)
        assert [change.job_id for change in changes] == ids[:2]

    async def test_following_again_replaces_the_statuses_and_keeps_what_waits(
        self, store: Store
    ) -> None:
        await store.changes.follow(NAME, [Status.QUEUED])
        await enqueue(store)
        await store.changes.follow(NAME, [Status.IN_PROGRESS])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert await told(store) == ["queued", "in_progress"]
        await store.changes.follow(NAME, [Status.IN_PROGRESS])
        await running(store)
        assert await told(store) == ["queued", "in_progress", "in_progress"]

    async def test_who_follows_no_more_leaves_nothing(self, store: Store) -> None:
        await store.changes.follow(NAME, ALL)
        await store.changes.follow(OTHER_NAME, ALL)
        await enqueue(store)
        assert await store.changes.unfollow(NAME)
        assert not await store.changes.unfollow(NAME)
        assert await told(store) == []
        await claim_one(store)
        assert await told(store, OTHER_NAME) == ["queued", "in_progress"]
        assert await store.changes.unfollow(OTHER_NAME)
        await enqueue(store)
        assert await store.changes.followers() == []
        await store.changes.follow(NAME, ALL)
        assert await told(store) == []

    async def test_followers_are_listed_with_what_waits_for_them(
        self, store: Store, clock: FakeClock
    ) -> None:
        assert await store.changes.followers() == []
        await store.changes.follow(OTHER_NAME, [Status.CANCELLED])
        await store.changes.follow(NAME, [Status.QUEUED, Status.COMPLETED])
        since = clock.now()
        for _ in range(2):
            await enqueue(store)
            clock.advance(seconds=5)
        first, second = await store.changes.followers()
        assert (first.name, set(first.statuses)) == (NAME, {Status.QUEUED, Status.COMPLETED})
        assert (first.waiting, first.oldest_at) == (2, since)
        assert (second.name, second.statuses) == (OTHER_NAME, (Status.CANCELLED,))
        assert (second.waiting, second.oldest_at) == (0, None)

    async def test_what_waits_survives(
        self, store: Store, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        await store.changes.follow(NAME, [Status.QUEUED])
        await enqueue(store)
        before = await store.changes.waiting(NAME)
        again = await reopen()
        assert await again.changes.waiting(NAME) == before
        await enqueue(again)
        assert await told(again) == ["queued", "queued"]


Way = Callable[[Store, FakeClock], Awaitable[str]]


async def _settled(store: Store, ending: Callable[..., object]) -> str:
    lease = await running(store)
    await store.jobs.settle(OWNER, [ending(lease)])  # type: ignore[list-item]
    return lease.id


async def _retried(store: Store, clock: FakeClock) -> str:
    job_id = await _settled(store, failed)
    clock.advance(seconds=2)
    await claim_one(store)
    return job_id


async def _delayed(store: Store, clock: FakeClock) -> str:
    job_id = await enqueue(store, delay_ms=5_000)
    clock.advance(seconds=6)
    await store.upkeep.stage()
    return job_id


async def _expired(store: Store, clock: FakeClock) -> str:
    job_id = await enqueue(store, expires_in_ms=1_000)
    clock.advance(seconds=2)
    await store.upkeep.expire()
    return job_id


async def _paused(store: Store, _: FakeClock) -> str:
    job_id = await enqueue(store)
    await store.controls.pause(PauseScope.JOB, job_id)
    await store.controls.pause(PauseScope.JOB, job_id)
    await store.controls.resume(PauseScope.JOB, job_id)
    await store.upkeep.stage()
    return job_id


async def _cancelled_waiting(store: Store, _: FakeClock) -> str:
    job_id = await enqueue(store)
    await store.jobs.cancel([job_id], "no")
    await store.jobs.cancel([job_id], "no")
    return job_id


async def _cancelled_running(store: Store, _: FakeClock) -> str:
    lease = await running(store)
    await store.jobs.cancel([lease.id], "no")
    await store.jobs.settle(OWNER, [cancelled(lease)])
    return lease.id


async def _requeued(store: Store, _: FakeClock) -> str:
    job_id = await dead_job(store)
    await store.jobs.requeue([job_id])
    await claim_one(store)
    return job_id


async def _rescued(store: Store, clock: FakeClock) -> str:
    lease = await running(store)
    clock.advance(seconds=LEASE_MS / 1000 + 1)
    await store.upkeep.rescue()
    return lease.id


async def _rescued_for_the_last_time(store: Store, _: FakeClock) -> str:
    lease = await running(store)
    await store.upkeep.rescue(owner=OWNER, max_rescues=1)
    return lease.id


async def _rescued_after_a_cancel(store: Store, _: FakeClock) -> str:
    lease = await running(store)
    await store.jobs.cancel([lease.id], "no")
    await store.upkeep.rescue(owner=OWNER)
    return lease.id


async def _released(store: Store, _: FakeClock) -> str:
    parent = await running(store, type="parent")
    child = await enqueue_after(store, parent.id)
    await store.jobs.settle(OWNER, [completed(parent)])
    await claim_one(store)
    return child


async def _cancelled_with_its_parent(store: Store, _: FakeClock) -> str:
    parent = await enqueue(store, type="parent")
    child = await enqueue_after(store, parent)
    await end(store, parent, buried)
    return child


async def _buried_with_its_parent(store: Store, _: FakeClock) -> str:
    parent = await enqueue(store, type="parent")
    child = await enqueue_after(store, an_edge(parent, on_failure="dead_letter"))
    await end(store, parent, buried)
    return child


async def _behind_in_line(store: Store, _: FakeClock) -> str:
    await enqueue(store, type="first", order_key="a")
    second = await enqueue(store, order_key="a")
    lease = await claim_one(store, types=("first",))
    await store.jobs.settle(OWNER, [completed(lease)])
    await claim_one(store)
    return second


async def _fired(store: Store, clock: FakeClock) -> str:
    job = a_job()
    schedule = Schedule(
        id=new_id(),
        name="each",
        type="work",
        kind=ScheduleKind.INTERVAL,
        interval_ms=60_000,
        next_run_at=clock.now(),
    )
    await store.schedules.put(schedule)
    [due], _ = await store.schedules.due()
    assert await store.schedules.fire(due, [job], clock.now() + 60_000, last_run_at=clock.now())
    return job.id


async def _one_of_many(store: Store, _: FakeClock) -> str:
    jobs = [a_job() for _ in range(3)]
    await store.jobs.enqueue(jobs)
    leases = await claim_all(store)
    await store.jobs.settle(OWNER, [completed(lease, "7") for lease in leases])
    return jobs[1].id


async def _amended(store: Store, _: FakeClock) -> str:
    job_id = await dead_job(store)
    await store.jobs.amend(job_id, "{}")
    return job_id


async def _keyed(store: Store, _: FakeClock) -> str:
    job_id = await enqueue(store, key="k")
    assert await enqueue(store, key="k") == job_id
    await end(store, job_id, completed)
    return job_id


STARTED = ["queued", "in_progress"]
WAYS: dict[str, tuple[Way, list[str]]] = {
    "completed": (lambda s, _: _settled(s, completed), [*STARTED, "completed"]),
    "retried": (_retried, [*STARTED, "failed", *STARTED]),
    "snoozed": (lambda s, _: _settled(s, snoozed), [*STARTED, "pending"]),
    "stopped": (lambda s, _: _settled(s, cancelled), [*STARTED, "cancelled"]),
    "buried": (lambda s, _: _settled(s, buried), [*STARTED, "dead_letter"]),
    "crashed": (lambda s, _: _settled(s, crashed), [*STARTED, "queued"]),
    "handed back": (lambda s, _: _settled(s, handed_back), [*STARTED, "queued"]),
    "delayed": (_delayed, ["pending", "queued"]),
    "expired": (_expired, ["queued", "dead_letter"]),
    "paused and resumed": (_paused, ["queued", "paused", "pending", "queued"]),
    "cancelled while waiting": (_cancelled_waiting, ["queued", "cancelled"]),
    "cancelled while running": (_cancelled_running, [*STARTED, "cancelled"]),
    "requeued": (_requeued, [*STARTED, "dead_letter", "pending", *STARTED]),
    "rescued": (_rescued, [*STARTED, "queued"]),
    "rescued for the last time": (_rescued_for_the_last_time, [*STARTED, "dead_letter"]),
    "rescued after a cancel": (_rescued_after_a_cancel, [*STARTED, "cancelled"]),
    "released": (_released, ["pending", *STARTED]),
    "cancelled with its parent": (_cancelled_with_its_parent, ["pending", "cancelled"]),
    "buried with its parent": (_buried_with_its_parent, ["pending", "dead_letter"]),
    "behind in line": (_behind_in_line, ["pending", *STARTED]),
    "fired by a schedule": (_fired, ["queued"]),
    "one of many": (_one_of_many, [*STARTED, "completed"]),
    "amended": (_amended, [*STARTED, "dead_letter"]),
    "keyed": (_keyed, [*STARTED, "completed"]),
}


class TestChanges:
    """What is told is what happened, once and in its order."""

    async def test_every_step_of_a_job_is_told_once(self, store: Store, clock: FakeClock) -> None:
        for way, (go, expected) in WAYS.items():
            await store.changes.follow(NAME, ALL)
            job_id = await go(store, clock)
            assert await told_of(store, job_id) == expected, way
            await store.transfer.clear()  # quicker than a store of its own for each

    @pytest.mark.parametrize("seed", range(2))
    async def test_whatever_is_done_all_of_it_is_told_and_nothing_else(
        self, store: Store, clock: FakeClock, seed: int
    ) -> None:
        await store.changes.follow(NAME, ALL)
        walk = Walk(store, clock, seed)
        for _ in range(120):
            await walk.random.choice(walk.steps)()
        steps: defaultdict[str, list[Status]] = defaultdict(list)
        last: dict[str, tuple[Status, int]] = {}
        for change in await store.changes.waiting(NAME, 10_000):
            steps[change.job_id].append(change.status)
            last[change.job_id] = change.status, change.fence
        jobs = await store.reader.get(walk.ids)
        assert last == {job.id: (job.status, job.fence) for job in jobs}
        for taken in steps.values():
            assert taken[0] in (Status.PENDING, Status.QUEUED)
            assert {*pairwise(taken)} <= ALLOWED

    async def test_who_reads_while_others_write_misses_nothing_and_hears_nothing_twice(
        self, store: Store, clock: FakeClock
    ) -> None:
        if store.url.endswith(":memory:"):
            pytest.skip("what is in memory has no second connection")
        await store.changes.follow(NAME, ALL)
        other = open_store(store.url, clock)
        await other.open()
        told: defaultdict[str, list[str]] = defaultdict(list)

        async def work(on: Store, owner: str) -> None:
            for _ in range(6):
                await asyncio.gather(*(enqueue(on) for _ in range(5)))
                leases = await claim_all(on, owner=owner, limit=5)
                await on.jobs.settle(owner, [completed(lease) for lease in leases])

        async def read() -> int:
            changes = await store.changes.waiting(NAME, 7)
            for change in changes:
                told[change.job_id].append(change.status)
            await store.changes.confirm(NAME, [change.position for change in changes])
            return len(changes)

        try:
            writers = asyncio.gather(work(store, OWNER), work(other, OTHER), work(store, OWNER))
            while not writers.done():
                await read()
            await writers
            while await read():
                pass
        finally:
            await other.close()
        assert len(told) == 90
        for job in await store.reader.get(list(told)):
            whole = [*STARTED, "completed"]
            assert told[job.id] == whole[: whole.index(job.status) + 1]

    async def test_what_is_refused_is_not_told(self, store: Store) -> None:
        await store.changes.follow(NAME, ALL)
        with pytest.raises(ParentNotFound):
            await store.jobs.enqueue([a_job(), a_job(after=(an_edge(NOBODY),))])
        assert await told(store) == []

    async def test_what_is_rolled_back_is_not_told(self, store: Store) -> None:
        if store.tables is None or store.url.endswith(":memory:"):
            pytest.skip("there is no transaction to roll back")
        await store.changes.follow(NAME, ALL)
        with pytest.raises(ZeroDivisionError):
            await store.tables.write(lambda tx: (tx.enqueue([a_job()]), 1 / 0))
        assert await told(store) == []
        await store.tables.write(lambda tx: tx.enqueue([a_job()]))
        assert await told(store) == ["queued"]

    async def test_a_stale_settlement_is_not_told(self, store: Store) -> None:
        lease = await running(store)
        await store.upkeep.rescue(owner=OWNER)
        await store.changes.follow(NAME, ALL)
        assert await store.jobs.settle(OWNER, [completed(lease)]) == [lease.id]
        assert await told(store) == []

    async def test_a_settlement_that_is_sent_twice_is_told_once(self, store: Store) -> None:
        await store.changes.follow(NAME, TERMINAL)
        lease = await running(store)
        for _ in range(2):
            assert await store.jobs.settle(OWNER, [completed(lease)]) == []
        assert await told(store) == ["completed"]

    async def test_what_is_moved_in_is_not_told_again(self, store: Store, clock: FakeClock) -> None:
        other = open_store("sqlite:///:memory:", clock)
        await other.open()
        try:
            await other.jobs.settle(OWNER, [completed(await running(other))])
            await enqueue(other)
            await other.changes.follow(NAME, ALL)
            job_id = await dead_job(other, type="other")
            await copy(other, store)
            assert await told(store) == [*STARTED, "dead_letter"]
            await store.jobs.requeue([job_id])
            assert await told_of(store, job_id) == [*STARTED, "dead_letter", "pending"]
        finally:
            await other.close()

    async def test_a_job_that_is_erased_takes_its_changes_along(self, store: Store) -> None:
        await store.changes.follow(NAME, ALL)
        await store.changes.follow(OTHER_NAME, TERMINAL)
        erased, kept = await dead_job(store), await enqueue(store)
        await store.upkeep.erase([erased])
        assert await told_of(store, erased) == await told(store, OTHER_NAME) == []
        assert await told_of(store, kept) == ["queued"]

    async def test_a_tenant_that_is_erased_takes_its_changes_along(self, store: Store) -> None:
        await store.changes.follow(NAME, ALL)
        kept = await enqueue(store)
        for _ in range(2):
            await enqueue(store, tenant_id="acme")
        assert await store.changes.erase("acme") == 2
        assert await store.changes.erase("acme") == 0
        assert [change.job_id for change in await store.changes.waiting(NAME)] == [kept]

    async def test_a_job_that_is_pruned_is_still_told(self, store: Store, clock: FakeClock) -> None:
        await store.changes.follow(NAME, TERMINAL)
        lease = await running(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        clock.advance(seconds=10)
        await store.upkeep.prune(Retention(keep_ms={Status.COMPLETED: 1_000}))
        assert await store.reader.get([lease.id]) == []
        assert await told_of(store, lease.id) == ["completed"]

    async def test_a_settlement_is_fenced_as_it_is_without_followers(self, store: Store) -> None:
        await store.changes.follow(NAME, ALL)
        leases = [await running(store) for _ in range(3)]
        await store.upkeep.rescue(owner=OWNER)
        fresh = [await running(store) for _ in range(2)]
        settled = [completed(lease) for lease in (leases[0], fresh[0], leases[2], fresh[1])]
        assert await store.jobs.settle(OWNER, settled) == [leases[0].id, leases[2].id]
        assert await status_of(store, fresh[1].id) is Status.COMPLETED
