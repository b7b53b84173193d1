"""Order keys: jobs that share one run one at a time, in the order they could have run."""

import pytest

from penstock.model.controls import PauseScope
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    LEASE_MS,
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
    enqueue_after,
    failed,
    handed_back,
    snoozed,
)


async def line_of(store: Store, number: int, order_key: str = "account-1") -> list[str]:
    """So many jobs in line; their ids."""
    answers = await store.jobs.enqueue([a_job(order_key=order_key) for _ in range(number)])
    return [answer.id for answer in answers]


async def run_order(store: Store, clock: FakeClock) -> list[str]:
    """Run everything, one claim after the other; the ids in order."""
    ran: list[str] = []
    for _ in range(100):
        leases = await claim_all(store)
        if not leases:
            return ran
        for lease in leases:
            await store.jobs.settle(OWNER, [completed(lease)])
            ran.append(lease.id)
        clock.advance(seconds=0.001)
    raise AssertionError("it never ended")


class TestOrderKeys:
    """A line: the first runs, the others wait."""

    async def test_jobs_of_one_key_run_one_at_a_time(self, store: Store) -> None:
        ids = await line_of(store, 5)
        assert [lease.id for lease in await claim_all(store)] == ids[:1]
        assert await claim_all(store, owner=OTHER) == []

    async def test_each_waits_for_the_one_before_it(self, store: Store, clock: FakeClock) -> None:
        ids = await line_of(store, 5)
        assert await run_order(store, clock) == ids

    async def test_keys_run_beside_each_other_and_per_tenant(self, store: Store) -> None:
        firsts = []
        for tenant, key in (("a", "x"), ("a", "y"), ("b", "x")):
            firsts.append(await enqueue(store, tenant_id=tenant, order_key=key))
            await enqueue(store, tenant_id=tenant, order_key=key)
        assert sorted(lease.id for lease in await claim_all(store)) == sorted(firsts)

    async def test_a_more_urgent_job_does_not_overtake_in_its_line(
        self, store: Store, clock: FakeClock
    ) -> None:
        slow = await enqueue(store, order_key="k", priority=9)
        urgent = await enqueue(store, order_key="k", priority=1)
        assert await run_order(store, clock) == [slow, urgent]

    @pytest.mark.parametrize("ending", [failed, snoozed, handed_back, crashed])
    async def test_a_job_that_comes_back_keeps_its_place(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        ids = await line_of(store, 3)
        await store.jobs.settle(OWNER, [ending(await claim_one(store))])
        clock.advance(seconds=0.5)
        assert [lease.id for lease in await claim_all(store)] in ([], ids[:1])
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        await store.upkeep.rescue()
        assert await run_order(store, clock) == ids

    async def test_a_job_whose_worker_died_keeps_its_place(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = await line_of(store, 2)
        await claim_one(store)
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        await store.upkeep.rescue()
        assert await run_order(store, clock) == ids

    @pytest.mark.parametrize("ending", [buried, cancelled])
    async def test_a_job_that_ends_badly_lets_the_next_one_go(
        self, store: Store, ending: Ending
    ) -> None:
        ids = await line_of(store, 2)
        await store.jobs.settle(OWNER, [ending(await claim_one(store))])
        assert (await claim_one(store)).id == ids[1]

    async def test_a_job_cancelled_in_the_middle_closes_up_the_line(
        self, store: Store, clock: FakeClock
    ) -> None:
        first, second, third, fourth = await line_of(store, 4)
        await store.jobs.cancel([second, third], "no")
        assert [lease.id for lease in await claim_all(store)] == [first]
        assert await claim_all(store) == []
        await store.jobs.cancel([first], "stop")
        assert await claim_all(store) == []
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        await store.upkeep.rescue()
        assert await run_order(store, clock) == [fourth]

    async def test_the_last_in_line_is_cancelled_and_a_new_one_joins(
        self, store: Store, clock: FakeClock
    ) -> None:
        first, second = await line_of(store, 2)
        await store.jobs.cancel([second], "no")
        [third] = await line_of(store, 1)
        assert await run_order(store, clock) == [first, third]

    async def test_a_whole_line_is_cancelled_and_another_begins(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.jobs.cancel(await line_of(store, 3), "no")
        again = await line_of(store, 2)
        assert await run_order(store, clock) == again

    async def test_a_delayed_job_holds_nobody_up(self, store: Store, clock: FakeClock) -> None:
        later = await enqueue(store, order_key="k", delay_ms=60_000)
        now = await enqueue(store, order_key="k")
        assert (await claim_one(store)).id == now
        clock.advance(seconds=60)
        assert await claim_all(store) == []
        clock.advance(seconds=1)
        await store.upkeep.rescue()
        assert await run_order(store, clock) == [now, later]

    async def test_jobs_that_fell_due_join_in_the_order_of_their_times(
        self, store: Store, clock: FakeClock
    ) -> None:
        second = await enqueue(store, order_key="k", delay_ms=2_000)
        first = await enqueue(store, order_key="k", delay_ms=1_000)
        clock.advance(seconds=10)
        assert await run_order(store, clock) == [first, second]

    async def test_a_requeued_job_joins_at_the_end(self, store: Store, clock: FakeClock) -> None:
        first, second, third = await line_of(store, 3)
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        await store.jobs.requeue([first])
        assert await run_order(store, clock) == [second, third, first]

    async def test_a_paused_job_in_line_holds_those_behind_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = await line_of(store, 3)
        await store.controls.pause(PauseScope.JOB, ids[1])
        assert await run_order(store, clock) == ids[:1]
        await store.controls.resume(PauseScope.JOB, ids[1])
        assert await run_order(store, clock) == ids[1:]

    async def test_the_first_in_line_is_paused_and_keeps_its_place(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = await line_of(store, 3)
        await store.controls.pause(PauseScope.JOB, ids[0])
        assert await claim_all(store) == []
        await store.controls.resume(PauseScope.JOB, ids[0])
        assert await run_order(store, clock) == ids

    async def test_a_paused_job_that_is_cancelled_lets_the_line_go_on(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = await line_of(store, 3)
        await store.controls.pause(PauseScope.JOB, ids[0])
        await store.jobs.cancel([ids[0]], "no")
        assert await run_order(store, clock) == ids[1:]

    async def test_an_expired_job_lets_the_line_go_on(self, store: Store, clock: FakeClock) -> None:
        first = await enqueue(store, order_key="k")
        await enqueue(store, order_key="k", expires_in_ms=1_000)
        third = await enqueue(store, order_key="k")
        clock.advance(seconds=2)
        await store.upkeep.expire()
        assert await run_order(store, clock) == [first, third]

    async def test_a_job_with_parents_joins_when_they_have_ended(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = await enqueue(store)
        child = await enqueue_after(store, parent, order_key="k")
        other = await enqueue(store, order_key="k")
        assert await run_order(store, clock) == [parent, other, child]

    async def test_a_line_leaves_nothing_behind_for_the_sweep(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = await line_of(store, 4)
        await store.jobs.cancel([ids[2]], "no")
        await run_order(store, clock)
        assert await store.upkeep.release() == 0
