"""Requeueing a parent: which of the dependents that ended with it come back."""

import pytest

from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    Ending,
    an_edge,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    enqueue,
    enqueue_after,
    job_of,
    running,
    status_of,
)
from proof.conformance.dependencies import Swept


class TestRestore(Swept):
    """Dependents that ended because of a parent wait for it again, if their edge says so."""

    @pytest.mark.parametrize("policy", ["cancel", "dead_letter"])
    @pytest.mark.parametrize("ending", [cancelled, buried])
    async def test_a_dependent_waits_for_its_requeued_parent(
        self, store: Store, ending: Ending, policy: str
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, on_failure=policy))
        await store.jobs.settle(OWNER, [ending(parent)])
        await store.jobs.requeue([parent.id])
        job = await job_of(store, child)
        assert (job.status, job.waiting_on, job.error) == (Status.PENDING, 1, None)
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert (await claim_one(store)).id == child

    async def test_it_may_fail_and_come_back_any_number_of_times(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        for _ in range(3):
            await store.jobs.settle(OWNER, [buried(parent)])
            assert await status_of(store, child) is Status.CANCELLED
            await store.jobs.requeue([parent.id])
            assert (await job_of(store, child)).waiting_on == 1
            parent = await claim_one(store)

    async def test_dependents_of_dependents_come_back_too(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        grandchild = await enqueue_after(store, an_edge(child, on_failure="dead_letter"))
        await store.jobs.settle(OWNER, [buried(parent)])
        assert await status_of(store, grandchild) is Status.DEAD_LETTER
        await store.jobs.requeue([parent.id])
        for job_id in (parent.id, child, grandchild):
            lease = await claim_one(store)
            assert lease.id == job_id
            await store.jobs.settle(OWNER, [completed(lease)])

    async def test_an_edge_may_leave_its_dependent_where_it_is(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, on_requeue="leave"))
        grandchild = await enqueue_after(store, child)
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([parent.id])
        assert await status_of(store, child) is Status.CANCELLED
        assert await status_of(store, grandchild) is Status.CANCELLED
        assert (await claim_one(store)).id == parent.id

    async def test_a_child_that_another_parent_ended_too_waits_for_both(self, store: Store) -> None:
        first, second = await running(store), await running(store)
        child = await enqueue_after(store, first.id, second.id)
        await store.jobs.settle(OWNER, [buried(first)])
        await store.jobs.settle(OWNER, [buried(second)])
        await store.jobs.requeue([first.id])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert (await status_of(store, child)) is not Status.QUEUED
        assert await claim_all(store) == []
        await store.jobs.requeue([second.id])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert (await claim_one(store)).id == child

    async def test_a_child_cancelled_by_hand_does_not_come_back(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.cancel([child], "not needed")
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([parent.id])
        assert await status_of(store, child) is Status.CANCELLED

    async def test_a_child_that_ran_anyway_is_left_alone(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, on_failure="run"))
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        await store.jobs.requeue([parent.id])
        assert await status_of(store, child) is Status.COMPLETED

    async def test_a_restored_child_has_its_key_again(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id, key="k")
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([parent.id])
        assert await enqueue(store, key="k") == child

    async def test_a_child_whose_key_was_taken_meanwhile_stays_where_it_is(
        self, store: Store
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id, key="k")
        await store.jobs.settle(OWNER, [buried(parent)])
        await enqueue(store, key="k", delay_ms=60_000)
        assert await store.jobs.requeue([parent.id]) == [parent.id]
        assert await status_of(store, child) is Status.CANCELLED
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])

    async def test_a_child_requeued_by_hand_before_its_parent_waits_for_nobody(
        self, store: Store
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([child])
        assert (await claim_one(store)).id == child

    @pytest.mark.parametrize("claimed", [False, True], ids=["queued", "running"])
    async def test_a_child_requeued_by_hand_is_not_held_up_by_its_parent_any_more(
        self, store: Store, claimed: bool
    ) -> None:
        parent = await running(store, type="other")
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([child])
        await store.upkeep.stage()
        leases = await claim_all(store) if claimed else []
        await store.jobs.requeue([parent.id])
        assert (await job_of(store, child)).waiting_on == 0
        await store.jobs.settle(OWNER, [buried(await claim_one(store, types=("other",)))])
        leases = leases or await claim_all(store)
        assert [lease.id for lease in leases] == [child]
        assert await store.jobs.settle(OWNER, [completed(leases[0])]) == []

    async def test_a_child_that_has_done_its_work_since_is_left_alone(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([child])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        await store.jobs.requeue([parent.id])
        assert await status_of(store, child) is Status.COMPLETED
        await store.jobs.settle(OWNER, [buried(await claim_one(store))])
        assert await status_of(store, child) is Status.COMPLETED

    async def test_parent_and_child_requeued_together_run_in_their_order(
        self, store: Store
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, on_failure="dead_letter"))
        await store.jobs.settle(OWNER, [buried(parent)])
        assert await store.jobs.requeue([child, parent.id]) == [child, parent.id]
        assert (await job_of(store, child)).waiting_on == 1
        lease = await claim_one(store)
        assert lease.id == parent.id
        await store.jobs.settle(OWNER, [completed(lease)])
        assert (await claim_one(store)).id == child

    async def test_a_restored_child_still_waits_for_its_other_parents(self, store: Store) -> None:
        first, slow = await running(store), await running(store, type="slow")
        child = await enqueue_after(store, first.id, slow.id)
        await store.jobs.settle(OWNER, [buried(first)])
        await store.jobs.requeue([first.id])
        assert (await job_of(store, child)).waiting_on == 2
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert await claim_all(store) == []
        await store.jobs.settle(OWNER, [completed(slow)])
        assert (await claim_one(store)).id == child

    async def test_a_result_that_came_while_a_child_was_cancelled_is_kept_for_it(
        self, store: Store
    ) -> None:
        first, slow = await running(store), await running(store, type="slow")
        child = await enqueue_after(
            store, first.id, an_edge(slow.id, kind="data", argument="value")
        )
        await store.jobs.settle(OWNER, [buried(first)])
        await store.jobs.settle(OWNER, [completed(slow, "7")])
        await store.jobs.requeue([first.id])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        lease = await claim_one(store)
        assert (lease.id, lease.payload) == (child, '{"value":7}')

    async def test_a_restored_child_keeps_its_own_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id, delay_ms=60_000)
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.jobs.requeue([parent.id])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert await claim_all(store) == []
        clock.advance(seconds=61)
        assert (await claim_one(store)).id == child

    async def test_a_child_requeued_while_its_parent_runs_waits_for_it(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(
            store, an_edge(parent.id, kind="data", argument="value"), payload="{}"
        )
        await store.jobs.cancel([child], "not now")
        await store.jobs.requeue([child])
        assert await claim_all(store) == []
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        lease = await claim_one(store)
        assert (lease.id, lease.payload) == (child, '{"value":7}')

    async def test_a_child_requeued_after_its_parent_ended_has_its_result(
        self, store: Store
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, kind="data", argument="value"))
        await store.jobs.cancel([child], "not now")
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        await store.jobs.requeue([child])
        assert (await claim_one(store)).payload == '{"value":7}'
