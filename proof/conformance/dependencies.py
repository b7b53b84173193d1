"""Edges: what a job waits for, and what becomes of it however its parents end."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge, EdgeKind, Outcome
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof import LONG
from proof.conformance.build import (
    OWNER,
    Ending,
    a_job,
    an_edge,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    end,
    enqueue,
    enqueue_after,
    failed,
    handed_back,
    job_of,
    running,
    snoozed,
    status_of,
)
from proof.conformance.keys import EVERYTHING

ENDED = {
    "cancel": Status.CANCELLED,
    "dead_letter": Status.DEAD_LETTER,
    "run": Status.QUEUED,
}
KINDS = ("completion", "success", "data", "conditional")


class Swept:
    """The release sweep is a backstop: whatever a test did, it finds nothing."""

    @pytest.fixture(autouse=True)
    async def nothing_is_left_to_the_sweep(self, store: Store) -> AsyncIterator[None]:
        yield
        assert await store.upkeep.release() == 0


def edge_of(kind: str, parent_id: str, on_failure: str = "cancel") -> Edge:
    """An edge of a kind that a parent with the result 7 satisfies."""
    condition = "result == 7" if kind == "conditional" else None
    argument = "value" if kind == "data" else None
    return an_edge(
        parent_id, kind=kind, on_failure=on_failure, condition=condition, argument=argument
    )


class TestEdges(Swept):
    """Every kind of edge, with every end of the parent, under every policy."""

    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_child_waits_while_its_parent_has_not_ended(
        self, store: Store, clock: FakeClock, kind: str
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, edge_of(kind, parent.id))
        for ending in (failed, snoozed, crashed, handed_back):
            await store.jobs.settle(OWNER, [ending(parent)])
            clock.advance(seconds=5)
            await store.upkeep.stage()
            job = await job_of(store, child)
            assert (job.status, job.waiting_on) == (Status.PENDING, 1)
            [parent] = await claim_all(store)

    @pytest.mark.parametrize("early", [False, True], ids=["ends after", "ended before"])
    @pytest.mark.parametrize("kind", KINDS)
    async def test_the_end_of_a_parent_decides(self, store: Store, kind: str, early: bool) -> None:
        endings: tuple[Ending, ...] = (completed, cancelled, buried)
        for ending in endings:
            parent = await running(store)
            done = completed(parent, "7") if ending is completed else ending(parent)
            if early:
                await store.jobs.settle(OWNER, [done])
            children = {
                policy: await enqueue_after(store, edge_of(kind, parent.id, policy), type="child")
                for policy in ENDED
            }
            if not early:
                await store.jobs.settle(OWNER, [done])
            await store.upkeep.stage()
            for policy, child in children.items():
                runs = ending is completed or kind == "completion"
                assert await status_of(store, child) is (Status.QUEUED if runs else ENDED[policy])

    async def test_a_child_that_may_run_is_claimed(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [completed(parent)])
        assert (await claim_one(store)).id == child

    async def test_a_cancelled_child_says_which_parent_ended(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [buried(parent)])
        assert parent.id in str((await job_of(store, child)).error)

    async def test_the_dead_letter_policy_makes_a_dead_letter(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, on_failure="dead_letter"))
        await store.jobs.settle(OWNER, [buried(parent)])
        letter = await store.dead.get(child)
        assert letter is not None
        assert parent.id in str(letter.error)

    async def test_edges_can_be_looked_up_from_both_ends(self, store: Store) -> None:
        parent = await running(store, type="first")
        child = await enqueue_after(store, edge_of("data", parent.id, "run"))
        [seen] = (await store.reader.dependencies(parent.id)).children
        assert (await store.reader.dependencies(child)).parents == [seen]
        assert (seen.child_id, seen.edge) == (child, edge_of("data", parent.id, "run"))
        assert (seen.parent_type, seen.parent_status) == ("first", Status.IN_PROGRESS)
        assert (seen.child_type, seen.child_status) == ("work", Status.PENDING)
        assert (seen.outcome, seen.closed_at) == (None, None)

    async def test_a_closed_edge_says_how_and_when(self, store: Store, clock: FakeClock) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        clock.advance(seconds=1)
        await store.jobs.settle(OWNER, [buried(parent)])
        [seen] = (await store.reader.dependencies(child)).parents
        assert (seen.outcome, seen.closed_at) == (Outcome.CANCELLED, clock.now())


async def _settled(store: Store, _: FakeClock, parent: str) -> None:
    await end(store, parent, buried)


async def _cancelled(store: Store, _: FakeClock, parent: str) -> None:
    await store.jobs.cancel([parent], "no")


async def _stopped(store: Store, _: FakeClock, parent: str) -> None:
    lease = await claim_one(store)
    await store.jobs.cancel([parent], "stop")
    await store.jobs.settle(OWNER, [failed(lease)])


async def _expired(store: Store, clock: FakeClock, _: str) -> None:
    clock.advance(seconds=3_600)
    await store.upkeep.expire()


async def _rescued(store: Store, clock: FakeClock, _: str) -> None:
    await claim_one(store)
    clock.advance(seconds=61)
    await store.upkeep.rescue(max_rescues=1)


async def _crashed(store: Store, _: FakeClock, parent: str) -> None:
    while (await job_of(store, parent)).status is not Status.DEAD_LETTER:
        await end(store, parent, crashed)


async def _stopped_and_rescued(store: Store, clock: FakeClock, parent: str) -> None:
    await claim_one(store)
    await store.jobs.cancel([parent], "stop")
    clock.advance(seconds=61)
    await store.upkeep.rescue()


class TestWaysToEnd(Swept):
    """However a parent ends, its children hear of it in the same step."""

    @pytest.mark.parametrize(
        "way",
        [_settled, _cancelled, _stopped, _expired, _rescued, _crashed, _stopped_and_rescued],
    )
    async def test_every_way_to_fail_ends_the_child(
        self,
        store: Store,
        clock: FakeClock,
        way: Callable[[Store, FakeClock, str], Awaitable[None]],
    ) -> None:
        parent = await enqueue(store, expires_in_ms=600_000)
        child, patient = (
            await enqueue_after(store, parent),
            await enqueue_after(store, an_edge(parent, kind="completion")),
        )
        await way(store, clock, parent)
        assert (await status_of(store, parent)).terminal
        assert await status_of(store, child) is Status.CANCELLED
        await store.upkeep.stage()
        assert await status_of(store, patient) is Status.QUEUED

    async def test_a_purged_parent_leaves_its_children_alone(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, on_failure="run"))
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.dead.purge([parent.id])
        assert (await claim_one(store)).id == child

    async def test_a_pruned_parent_has_handed_its_result_over(
        self, store: Store, clock: FakeClock
    ) -> None:
        first, second = await running(store), await running(store, type="slow")
        child = await enqueue_after(store, edge_of("data", first.id), second.id, payload='{"a":1}')
        await store.jobs.settle(OWNER, [completed(first, "7")])
        clock.advance(seconds=10)
        assert (await store.upkeep.prune(EVERYTHING)).jobs == 1
        await store.jobs.settle(OWNER, [completed(second)])
        lease = await claim_one(store)
        assert (lease.id, lease.payload) == (child, '{"a":1,"value":7}')

    async def test_pruning_takes_the_edges_along(self, store: Store, clock: FakeClock) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [completed(parent)])
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        clock.advance(seconds=10)
        assert (await store.upkeep.prune(EVERYTHING)).jobs == 2
        assert (await store.reader.dependencies(child)).parents == []


class TestShapes(Swept):
    """Fan-in, fan-out, and long lines."""

    async def test_a_fan_in_waits_for_the_last_parent(self, store: Store) -> None:
        parents = [await running(store) for _ in range(5)]
        child = await enqueue_after(store, *(parent.id for parent in parents))
        for number, parent in enumerate(parents):
            assert (await job_of(store, child)).waiting_on == 5 - number
            await store.jobs.settle(OWNER, [completed(parent)])
        assert (await claim_one(store)).id == child

    async def test_parents_that_end_in_one_batch_release_together(self, store: Store) -> None:
        parents = [await running(store) for _ in range(5)]
        child = await enqueue_after(store, *(parent.id for parent in parents))
        await store.jobs.settle(OWNER, [completed(parent) for parent in parents])
        assert (await claim_one(store)).id == child

    async def test_one_failing_parent_is_enough_and_the_others_change_nothing(
        self, store: Store
    ) -> None:
        parents = [await running(store) for _ in range(3)]
        child = await enqueue_after(store, *(parent.id for parent in parents))
        await store.jobs.settle(OWNER, [buried(parents[1])])
        before = await job_of(store, child)
        assert before.status is Status.CANCELLED
        await store.jobs.settle(OWNER, [completed(parents[0]), completed(parents[2])])
        after = await job_of(store, child)
        assert (after.status, after.error) == (before.status, before.error)
        assert await claim_all(store) == []

    async def test_a_fan_out_releases_all_children(self, store: Store) -> None:
        parent = await running(store)
        children = {await enqueue_after(store, parent.id) for _ in range(50)}
        await store.jobs.settle(OWNER, [completed(parent)])
        assert {lease.id for lease in await claim_all(store)} == children

    async def test_a_thousand_parents_of_one_child_end_in_one_batch(self, store: Store) -> None:
        parents = [a_job() for _ in range(1_000)]
        child = a_job(type="last", after=tuple(an_edge(parent.id) for parent in parents))
        await store.jobs.enqueue([*parents, child])
        leases = await claim_all(store, limit=1_000)
        await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
        assert (await claim_one(store, types=("last",))).id == child.id

    async def test_one_parent_of_two_kinds_counts_once_each(self, store: Store) -> None:
        parent = await running(store)
        edges = (edge_of("conditional", parent.id), edge_of("data", parent.id))
        child = await enqueue_after(store, *edges)
        assert (await job_of(store, child)).waiting_on == 2
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        lease = await claim_one(store)
        assert (lease.id, lease.payload) == (child, '{"value":7}')

    async def test_a_cascade_deeper_than_any_stack_ends_at_once(self, store: Store) -> None:
        jobs = [a_job()]
        # By steps that call each other, a third of it would be too deep as well.
        for _ in range(1_100 if LONG else 400):
            jobs.append(a_job(after=(an_edge(jobs[-1].id),)))
        await store.jobs.enqueue(jobs)
        await end(store, jobs[0].id, buried)
        last = await job_of(store, jobs[-1].id)
        assert last.status is Status.CANCELLED
        assert jobs[-2].id in str(last.error)
        await store.jobs.requeue([jobs[0].id])
        assert (await job_of(store, jobs[-1].id)).waiting_on == 1

    @pytest.mark.parametrize(("kind", "ending"), [("success", buried), ("conditional", completed)])
    async def test_a_child_is_told_nothing_of_a_parent_of_another_tenant(
        self, store: Store, kind: str, ending: Ending
    ) -> None:
        parent = await running(store, type="secret", tenant_id="north")
        own = await enqueue_after(store, edge_of(kind, parent.id), tenant_id="north")
        others = await enqueue_after(store, edge_of(kind, parent.id), tenant_id="south")
        await store.jobs.settle(OWNER, [ending(parent)])
        told = await job_of(store, others)
        assert told.status is Status.CANCELLED
        assert "a job of another tenant" in str(told.error).lower()
        for secret in (parent.id, "secret", "dead_letter"):
            assert secret not in f"{told.error} {told.error_details}"
        assert parent.id in str((await job_of(store, own)).error)

    async def test_a_diamond_runs_its_foot_once(self, store: Store) -> None:
        top = await running(store)
        sides = [await enqueue_after(store, top.id) for _ in range(2)]
        foot = await enqueue_after(store, *sides)
        await store.jobs.settle(OWNER, [completed(top)])
        await store.jobs.settle(OWNER, [completed(lease) for lease in await claim_all(store)])
        assert (await claim_one(store)).id == foot
        assert await claim_all(store) == []


class TestWaitingChildren(Swept):
    """What else may hold or end a child while it waits."""

    async def test_a_lost_answer_to_a_settlement_releases_once(self, store: Store) -> None:
        first, second = await running(store), await running(store)
        child = await enqueue_after(store, first.id, second.id)
        for _ in range(3):
            assert await store.jobs.settle(OWNER, [completed(first)]) == []
        job = await job_of(store, child)
        assert (job.status, job.waiting_on) == (Status.PENDING, 1)

    async def test_a_stale_settlement_releases_nothing(self, store: Store) -> None:
        stale = await running(store)
        child = await enqueue_after(store, stale.id)
        await store.upkeep.rescue(owner=OWNER)
        assert await store.jobs.settle(OWNER, [completed(stale)]) == [stale.id]
        assert (await job_of(store, child)).waiting_on == 1

    async def test_a_released_child_still_waits_for_its_own_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id, delay_ms=60_000)
        await store.jobs.settle(OWNER, [completed(parent)])
        assert await claim_all(store) == []
        clock.advance(seconds=61)
        assert (await claim_one(store)).id == child

    async def test_a_paused_child_is_released_when_it_goes_on(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.controls.pause(PauseScope.JOB, child)
        await store.jobs.settle(OWNER, [completed(parent)])
        assert await status_of(store, child) is Status.PAUSED
        await store.controls.resume(PauseScope.JOB, child)
        assert (await claim_one(store)).id == child

    async def test_a_paused_child_that_goes_on_first_still_waits(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.controls.pause(PauseScope.JOB, child)
        await store.controls.resume(PauseScope.JOB, child)
        assert await claim_all(store) == []
        assert (await job_of(store, child)).waiting_on == 1

    async def test_a_paused_child_ends_with_its_parent(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.controls.pause(PauseScope.JOB, child)
        await store.jobs.settle(OWNER, [buried(parent)])
        assert await status_of(store, child) is Status.CANCELLED
        assert await store.controls.pauses() == []

    async def test_a_child_may_expire_while_it_waits(self, store: Store, clock: FakeClock) -> None:
        parent = await enqueue(store, type="slow")
        child = await enqueue_after(store, parent, expires_in_ms=1_000)
        grandchild = await enqueue_after(store, child)
        clock.advance(seconds=2)
        assert await store.upkeep.expire() == [child]
        assert await status_of(store, grandchild) is Status.CANCELLED
        await end(store, parent, completed)
        assert await status_of(store, child) is Status.DEAD_LETTER

    async def test_a_child_cancelled_by_hand_stays_so(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.cancel([child], "not needed")
        await store.jobs.settle(OWNER, [completed(parent)])
        job = await job_of(store, child)
        assert (job.status, job.error) == (Status.CANCELLED, "not needed")

    async def test_the_keys_of_cancelled_children_are_free_again(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id, key="child")
        await enqueue_after(store, child, key="grandchild")
        await store.jobs.settle(OWNER, [buried(parent)])
        for key in ("child", "grandchild"):
            assert (await store.jobs.enqueue([a_job(key=key)]))[0].created

    async def test_watching_a_child_tells_of_its_end(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [buried(parent)])
        seen = [job async for job in store.reader.watch([child])]
        assert seen[-1].status is Status.CANCELLED

    @pytest.mark.parametrize("kind", [kind.value for kind in EdgeKind if kind != "order"])
    async def test_a_requeued_child_whose_edges_are_closed_runs(
        self, store: Store, kind: str
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, edge_of(kind, parent.id))
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        await end(store, child, buried)
        await store.jobs.requeue([child])
        assert (await claim_one(store)).id == child
