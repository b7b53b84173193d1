"""Edges as they are made: with a job or added to it, all of them or none."""

import pytest

from penstock.model.controls import PauseScope
from penstock.model.errors import DependencyCycle, IllegalTransition, ParentNotFound
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.contract import Dependencies, JobFilter, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OWNER,
    Ending,
    a_job,
    an_edge,
    buried,
    claim_all,
    claim_one,
    completed,
    dead_job,
    enqueue,
    enqueue_after,
    job_of,
    running,
    status_of,
)
from proof.conformance.dependencies import Swept
from proof.conformance.keys import EVERYTHING


class TestLinking(Swept):
    """Edges are made with the job or added to it, all of them or none."""

    async def test_parents_may_be_in_the_same_call_in_any_order(self, store: Store) -> None:
        parent = a_job()
        child = a_job(after=(an_edge(parent.id),))
        await store.jobs.enqueue([child, parent])
        assert (await claim_one(store)).id == parent.id

    @pytest.mark.parametrize("gone", ["unknown", "pruned"])
    async def test_a_parent_that_is_not_there_refuses_the_whole_call(
        self, store: Store, clock: FakeClock, gone: str
    ) -> None:
        missing = NOBODY
        if gone == "pruned":
            missing = await dead_job(store)
            clock.advance(seconds=10)
            await store.upkeep.prune(EVERYTHING)
        jobs = [a_job(key="k"), a_job(after=(an_edge(missing),)), a_job()]
        with pytest.raises(ParentNotFound, match=missing):
            await store.jobs.enqueue(jobs)
        assert await store.reader.find(JobFilter()) == []
        assert (await store.jobs.enqueue([a_job(key="k")]))[0].created

    async def test_a_cycle_in_one_call_is_refused_and_named(self, store: Store) -> None:
        first, second = a_job(), a_job()
        jobs = [
            a_job(id=first.id, after=(an_edge(second.id),)),
            a_job(id=second.id, after=(an_edge(first.id),)),
        ]
        with pytest.raises(DependencyCycle) as refused:
            await store.jobs.enqueue(jobs)
        assert set(refused.value.path) == {first.id, second.id}
        assert refused.value.path[0] == refused.value.path[-1]
        assert await store.reader.find(JobFilter()) == []

    async def test_a_job_cannot_wait_for_itself(self, store: Store) -> None:
        itself = a_job()
        with pytest.raises(DependencyCycle):
            await store.jobs.enqueue([a_job(id=itself.id, after=(an_edge(itself.id),))])
        waiting = await enqueue(store, delay_ms=5_000)
        with pytest.raises(DependencyCycle):
            await store.jobs.depend(waiting, [an_edge(waiting)])

    async def test_a_retried_enqueue_adds_no_edge(self, store: Store) -> None:
        parent = await running(store)
        job = a_job(after=(an_edge(parent.id),))
        await store.jobs.enqueue([job])
        assert not (await store.jobs.enqueue([job]))[0].created
        assert (await job_of(store, job.id)).waiting_on == 1
        await store.jobs.settle(OWNER, [completed(parent)])
        assert not (await store.jobs.enqueue([job]))[0].created
        assert (await claim_one(store)).id == job.id

    async def test_a_parent_whose_key_was_taken_is_the_job_that_has_it(self, store: Store) -> None:
        holder = await running(store, key="k")
        parent = a_job(key="k")
        child = a_job(after=(an_edge(parent.id),))
        await store.jobs.enqueue([parent, child])
        assert await status_of(store, child.id) is Status.PENDING
        await store.jobs.settle(OWNER, [completed(holder)])
        assert (await claim_one(store)).id == child.id

    async def test_an_edge_can_be_added_to_a_job_that_waits(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = await running(store)
        child = await enqueue(store, delay_ms=5_000)
        await store.jobs.depend(child, [an_edge(parent.id)])
        clock.advance(seconds=10)
        assert await claim_all(store) == []
        await store.jobs.settle(OWNER, [completed(parent)])
        assert (await claim_one(store)).id == child

    async def test_an_edge_that_is_there_already_is_not_added_again(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.depend(child, [an_edge(parent.id), an_edge(parent.id)])
        assert (await job_of(store, child)).waiting_on == 1

    @pytest.mark.parametrize("ending", [completed, buried])
    async def test_an_added_edge_to_an_ended_parent_counts_at_once(
        self, store: Store, ending: Ending
    ) -> None:
        slow, parent = await running(store, type="slow"), await running(store)
        child = await enqueue_after(store, slow.id)
        await store.jobs.settle(OWNER, [ending(parent)])
        await store.jobs.depend(child, [an_edge(parent.id)])
        job = await job_of(store, child)
        expected = Status.PENDING if ending is completed else Status.CANCELLED
        assert (job.status, job.waiting_on) == (expected, 1)

    async def test_a_cycle_through_added_edges_is_refused_and_named(self, store: Store) -> None:
        first = await enqueue(store, delay_ms=5_000)
        second = await enqueue_after(store, first)
        third = await enqueue_after(store, second)
        with pytest.raises(DependencyCycle) as refused:
            await store.jobs.depend(first, [an_edge(third)])
        assert set(refused.value.path) == {first, second, third}
        assert (await job_of(store, first)).waiting_on == 0

    async def test_adding_is_refused_whole(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue(store, delay_ms=5_000)
        with pytest.raises(ParentNotFound):
            await store.jobs.depend(child, [an_edge(parent.id), an_edge(NOBODY)])
        assert (await store.reader.dependencies(child)).parents == []
        assert (await job_of(store, child)).waiting_on == 0

    async def test_a_job_that_is_queued_runs_or_has_ended_takes_no_edge(self, store: Store) -> None:
        parent, ended = await running(store), await dead_job(store)
        queued = await enqueue(store)
        for child in (parent.id, ended, queued):
            with pytest.raises(IllegalTransition):
                await store.jobs.depend(child, [an_edge(await enqueue(store, delay_ms=9_000))])
        with pytest.raises(JobNotFound):
            await store.jobs.depend(NOBODY, [an_edge(parent.id)])

    async def test_a_paused_job_takes_an_edge(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue(store, delay_ms=1)
        await store.controls.pause(PauseScope.JOB, child)
        await store.jobs.depend(child, [an_edge(parent.id)])
        await store.controls.resume(PauseScope.JOB, child)
        assert (await job_of(store, child)).waiting_on == 1

    async def test_a_child_whose_key_was_taken_adds_no_edge_to_the_holder(
        self, store: Store
    ) -> None:
        parent, holder = await running(store), await running(store, key="k")
        assert await enqueue_after(store, parent.id, key="k") == holder.id
        assert (await store.reader.dependencies(holder.id)).parents == []
        assert (await job_of(store, holder.id)).waiting_on == 0

    async def test_a_pruned_child_is_forgotten_by_its_parent(
        self, store: Store, clock: FakeClock
    ) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.cancel([child], "no")
        clock.advance(seconds=10)
        assert (await store.upkeep.prune(EVERYTHING)).jobs == 1
        assert (await store.reader.dependencies(parent.id)).children == []
        assert await store.jobs.settle(OWNER, [completed(parent)]) == []

    async def test_a_purged_parent_is_known_by_its_id_alone(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, parent.id)
        await store.jobs.settle(OWNER, [buried(parent)])
        await store.dead.purge([parent.id])
        [seen] = (await store.reader.dependencies(child)).parents
        assert (seen.edge.parent_id, seen.parent_type, seen.parent_status) == (
            parent.id,
            None,
            None,
        )
        await store.jobs.requeue([child])
        assert (await claim_one(store)).id == child

    async def test_a_look_at_edges_is_bounded(self, store: Store) -> None:
        parent = await running(store)
        for _ in range(5):
            await enqueue_after(store, parent.id)
        assert len((await store.reader.dependencies(parent.id, limit=3)).children) == 3
        assert await store.reader.dependencies(NOBODY) == Dependencies([], [])
