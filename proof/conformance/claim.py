"""Claim: who gets which jobs, in what order, under which fence."""

from collections import Counter

from penstock.model.controls import Limit, LimitKind, LimitScope
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    LEASE_MS,
    OTHER,
    OWNER,
    a_claim,
    a_job,
    claim_all,
    claim_one,
    completed,
    enqueue,
    failed,
    handed_back,
    job_of,
    picture,
    status_of,
)

HOUR = 3_600


class TestClaim:
    """A lease is the right to run one execution."""

    async def test_a_claimed_job_is_in_progress_under_its_owner(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        clock.advance(seconds=3)
        lease = await claim_one(store)
        job = await job_of(store, job_id)
        assert lease.id == job_id
        assert (job.status, job.lease_owner) == (Status.IN_PROGRESS, OWNER)
        assert (job.fence, job.attempts) == (lease.fence, 0)
        assert job.started_at == lease.started_at == job.updated_at == clock.now()
        assert job.lease_until == clock.now() + LEASE_MS

    async def test_a_job_is_leased_to_one_worker_at_a_time(self, store: Store) -> None:
        await enqueue(store)
        assert len(await claim_all(store)) == 1
        assert await claim_all(store, owner=OTHER) == []

    async def test_no_more_than_the_limit_is_granted(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(5)])
        assert [len(await claim_all(store, limit=2)) for _ in range(4)] == [2, 2, 1, 0]

    async def test_an_empty_store_grants_nothing(self, store: Store) -> None:
        granted = await store.jobs.claim(a_claim())
        assert (granted.leases, granted.next_due_in_ms) == ([], None)

    async def test_progress_of_the_last_execution_is_cleared(self, store: Store) -> None:
        await enqueue(store)
        job = await job_of(store, (await claim_one(store)).id)
        assert (job.progress_percent, job.progress_message) == (None, None)


class TestFilters:
    """Only what was asked for is handed out, whatever else waits."""

    async def test_only_the_named_types_are_handed_out(self, store: Store) -> None:
        await enqueue(store, type="a")
        wanted = await enqueue(store, type="b")
        assert [lease.id for lease in await claim_all(store, types=("b", "c"))] == [wanted]

    async def test_an_unknown_type_is_left_waiting_untouched(self, store: Store) -> None:
        unknown = await enqueue(store, type="of the next release", priority=1)
        before = await picture(store, unknown)
        await enqueue(store)
        assert len(await claim_all(store)) == 1
        assert await picture(store, unknown) == before
        assert len(await claim_all(store, types=("of the next release",))) == 1

    async def test_no_types_are_handed_no_jobs(self, store: Store) -> None:
        await enqueue(store)
        assert await claim_all(store, types=()) == []

    async def test_only_the_named_queues_are_served(self, store: Store) -> None:
        await enqueue(store, queue="a")
        wanted = [await enqueue(store, queue="b"), await enqueue(store, queue="c")]
        leases = await claim_all(store, queues=("b", "c"))
        assert [lease.id for lease in leases] == wanted

    async def test_all_queues_are_served_unless_some_are_named(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(queue=queue) for queue in "abc"])
        assert len(await claim_all(store)) == 3

    async def test_nothing_less_urgent_than_asked_is_handed_out(self, store: Store) -> None:
        await enqueue(store, priority=4)
        wanted = [await enqueue(store, priority=1), await enqueue(store, priority=3)]
        leases = await claim_all(store, max_priority=3)
        assert [lease.id for lease in leases] == wanted


class TestAtMost:
    """Of some types a worker takes no more than it says, and of others as many as there are."""

    async def test_no_more_of_a_type_is_granted(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(type=name, tenant_id=t) for name in "ab" for t in "123"])
        leases = await claim_all(store, types=("a", "b"), at_most={"a": 2})
        assert Counter(lease.type for lease in leases) == {"a": 2, "b": 3}
        leases = await claim_all(store, types=("a", "b"), at_most={"a": 2})
        assert [lease.type for lease in leases] == ["a"]

    async def test_no_more_is_granted_where_nothing_else_waits(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(5)])
        sizes = [len(await claim_all(store, at_most={"work": most})) for most in (2, 0, 1, 9)]
        assert sizes == [2, 0, 1, 2]

    async def test_a_single_job_waits_while_its_type_has_no_room(self, store: Store) -> None:
        job_id = await enqueue(store)
        assert await claim_all(store, at_most={"work": 0}) == []
        assert await status_of(store, job_id) is Status.QUEUED
        assert (await claim_one(store, at_most={"work": 1})).id == job_id

    async def test_a_less_urgent_type_fills_the_place(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(type="a", priority=1) for _ in range(4)])
        await store.jobs.enqueue([a_job(type="b", priority=9) for _ in range(4)])
        leases = await claim_all(store, types=("a", "b"), limit=4, at_most={"a": 1})
        assert [lease.type for lease in leases] == ["a", "b", "b", "b"]

    async def test_limits_of_the_fleet_hold_as_well(self, store: Store) -> None:
        limits = [
            Limit(scope=LimitScope.TYPE, name="a", kind=LimitKind.CONCURRENCY, capacity=3),
            Limit(scope=LimitScope.TYPE, name="b", kind=LimitKind.CONCURRENCY, capacity=1),
        ]
        await store.controls.set_limits(limits)
        await store.jobs.enqueue([a_job(type=name) for name in "abc" for _ in range(4)])
        leases = await claim_all(store, types=("a", "b", "c"), at_most={"a": 2, "c": 0})
        assert Counter(lease.type for lease in leases) == {"a": 2, "b": 1}


class TestOrder:
    """Rank is the time a job fell due plus a handicap per step of priority."""

    async def test_the_most_urgent_go_first(self, store: Store) -> None:
        ids = {p: await enqueue(store, priority=p) for p in (5, 10, 1, 7, 2)}
        leases = await claim_all(store)
        assert [lease.id for lease in leases] == [ids[p] for p in sorted(ids)]

    async def test_the_most_urgent_go_first_across_queues_and_types(self, store: Store) -> None:
        late = await enqueue(store, priority=9, queue="a", type="a")
        soon = await enqueue(store, priority=2, queue="b", type="b")
        for expected in (soon, late):
            assert (await claim_one(store, types=("a", "b"), limit=1)).id == expected

    async def test_the_older_of_two_equals_goes_first(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for _ in range(3):
            ids.append(await enqueue(store))
            clock.advance(seconds=1)
        for expected in ids:
            assert (await claim_one(store, limit=1)).id == expected

    async def test_a_newer_urgent_job_overtakes(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store, priority=10)
        clock.advance(seconds=HOUR)
        urgent = await enqueue(store, priority=1)
        assert (await claim_one(store, limit=1)).id == urgent

    async def test_priority_ten_is_not_starved_by_priority_one(
        self, store: Store, clock: FakeClock
    ) -> None:
        patient = await enqueue(store, priority=10)
        clock.advance(seconds=9 * HOUR + 1)
        await store.jobs.enqueue([a_job(priority=1) for _ in range(3)])
        assert (await claim_one(store, limit=1)).id == patient

    async def test_a_job_handed_back_keeps_its_place(self, store: Store, clock: FakeClock) -> None:
        first = await enqueue(store)
        clock.advance(seconds=1)
        await enqueue(store)
        await store.jobs.settle(OWNER, [handed_back(await claim_one(store, limit=1))])
        assert (await claim_one(store, limit=1)).id == first

    async def test_a_retry_stands_behind_what_fell_due_before_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        retried = await enqueue(store)
        await store.jobs.settle(OWNER, [failed(await claim_one(store), retry_in_ms=10_000)])
        clock.advance(seconds=5)
        newer = await enqueue(store)
        clock.advance(seconds=5)
        assert [lease.id for lease in await claim_all(store)] == [newer, retried]


class TestTenants:
    """Tenants take turns, however much each of them has waiting."""

    async def test_a_small_tenant_does_not_wait_behind_a_large_one(self, store: Store) -> None:
        await store.jobs.enqueue([a_job(tenant_id="large", priority=1) for _ in range(50)])
        await store.jobs.enqueue([a_job(tenant_id="small") for _ in range(5)])
        leases = await claim_all(store, limit=10)
        assert Counter(lease.tenant_id for lease in leases) == {"large": 5, "small": 5}

    async def test_turns_go_on_from_claim_to_claim(self, store: Store) -> None:
        for tenant in "abc":
            await store.jobs.enqueue([a_job(tenant_id=tenant) for _ in range(4)])
        served = [(await claim_one(store, limit=1)).tenant_id for _ in range(6)]
        assert sorted(served[:3]) == sorted(served[3:]) == ["a", "b", "c"]

    async def test_a_tenant_with_many_queues_has_one_turn(self, store: Store) -> None:
        await store.jobs.enqueue(
            [a_job(tenant_id="wide", queue=f"q{n % 5}", type=f"t{n % 2}") for n in range(40)]
        )
        await store.jobs.enqueue([a_job(tenant_id="small", type="t0") for _ in range(8)])
        leases = await claim_all(store, types=("t0", "t1"), limit=8)
        assert Counter(lease.tenant_id for lease in leases) == {"wide": 4, "small": 4}

    async def test_the_last_of_very_many_tenants_gets_its_turn(self, store: Store) -> None:
        tenants = [f"t{n:04}" for n in range(600)]
        await store.jobs.enqueue([a_job(tenant_id=tenant) for tenant in tenants for _ in range(3)])
        served = {lease.tenant_id for _ in range(4) for lease in await claim_all(store, limit=300)}
        assert served == set(tenants)


class TestPrefetch:
    """Beyond `start`, leases are granted but not started."""

    async def test_leases_beyond_start_are_marked_as_not_started(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(5)])
        leases = await claim_all(store, limit=5, start=2)
        jobs = await store.reader.get([lease.id for lease in leases])
        assert [lease.started_at is None for lease in leases] == [False] * 2 + [True] * 3
        assert [job.started_at for job in jobs] == [lease.started_at for lease in leases]
        assert {job.status for job in jobs} == {Status.IN_PROGRESS}

    async def test_the_most_urgent_are_the_ones_started(self, store: Store) -> None:
        ids = {p: await enqueue(store, priority=p) for p in (9, 1, 5, 3)}
        leases = await claim_all(store, limit=4, start=2)
        assert [lease.id for lease in leases] == [ids[p] for p in (1, 3, 5, 9)]
        assert [lease.started_at is None for lease in leases] == [False, False, True, True]

    async def test_start_marks_them(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        clock.advance(seconds=2)
        await store.jobs.start(OWNER, [(lease.id, lease.fence)])
        assert (await job_of(store, lease.id)).started_at == clock.now()

    async def test_start_does_not_move_a_mark(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store)
        lease = await claim_one(store)
        clock.advance(seconds=2)
        await store.jobs.start(OWNER, [(lease.id, lease.fence)])
        assert (await job_of(store, lease.id)).started_at == lease.started_at

    async def test_start_is_fenced(self, store: Store) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        before = await picture(store, lease.id)
        await store.jobs.start(OWNER, [(lease.id, lease.fence + 1)])
        await store.jobs.start(OTHER, [(lease.id, lease.fence)])
        assert await picture(store, lease.id) == before

    async def test_a_prefetched_job_can_be_settled_all_the_same(self, store: Store) -> None:
        await enqueue(store)
        lease = await claim_one(store, start=0)
        assert await store.jobs.settle(OWNER, [completed(lease)]) == []
        assert await status_of(store, lease.id) is Status.COMPLETED


class TestDue:
    """A claim stages what fell due first, and says when the next job will."""

    async def test_a_delayed_job_is_not_claimed_early(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store, delay_ms=5_000)
        clock.advance(seconds=4.999)
        assert await claim_all(store) == []

    async def test_a_claim_stages_due_jobs_without_a_leader(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store, delay_ms=5_000)
        clock.advance(seconds=5)
        lease = await claim_one(store)
        assert (lease.id, lease.queued_at) == (job_id, clock.now())

    async def test_a_claim_gets_as_many_due_jobs_as_it_asks_for(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.jobs.enqueue([a_job(delay_ms=5_000) for _ in range(300)])
        clock.advance(seconds=5)
        assert len(await claim_all(store, limit=250)) == 250

    async def test_a_failed_job_is_claimed_at_its_retry_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        await enqueue(store)
        await store.jobs.settle(OWNER, [failed(await claim_one(store), retry_in_ms=2_000)])
        assert await claim_all(store) == []
        clock.advance(seconds=2)
        assert (await claim_one(store)).attempts == 1

    async def test_the_next_due_time_is_told(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store, delay_ms=9_000)
        await enqueue(store, delay_ms=5_000)
        clock.advance(seconds=1)
        assert (await store.jobs.claim(a_claim())).next_due_in_ms == 4_000

    async def test_the_next_due_time_is_none_when_nothing_waits_for_its_time(
        self, store: Store
    ) -> None:
        await enqueue(store)
        assert (await store.jobs.claim(a_claim())).next_due_in_ms is None


class TestFence:
    """The number that proves a lease: it only grows."""

    async def test_it_grows_by_one_at_every_claim(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store)
        fences = []
        for _ in range(3):
            lease = await claim_one(store)
            fences.append(lease.fence)
            await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
        assert fences == [1, 2, 3]

    async def test_it_grows_when_a_lease_is_given_back(self, store: Store) -> None:
        await enqueue(store)
        lease = await claim_one(store)
        await store.jobs.settle(OWNER, [handed_back(lease)])
        assert (await job_of(store, lease.id)).fence == lease.fence + 1
        assert (await claim_one(store)).fence == lease.fence + 2
