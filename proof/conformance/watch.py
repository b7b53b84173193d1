"""Watching jobs, and hearing that something changed."""

import asyncio
import time

from penstock.model.job import Job, Lease
from penstock.model.states import Status
from penstock.store.contract import Retention, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OWNER,
    claim_all,
    completed,
    enqueue,
    failed,
    running,
)

PATIENCE = 30.0
SILENCE = 0.01
WAYS_TO_LISTEN = 2


async def _statuses(store: Store, *ids: str) -> list[tuple[str, Status]]:
    async with asyncio.timeout(PATIENCE):
        return [(job.id, job.status) async for job in store.reader.watch(ids)]


class TestWatch:
    """Each job now and whenever it changes, until all of them are terminal."""

    async def test_an_ended_job_is_shown_once(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        assert await _statuses(store, lease.id) == [(lease.id, Status.COMPLETED)]

    async def test_unknown_ids_end_at_once(self, store: Store) -> None:
        assert await _statuses(store, NOBODY) == []
        assert await _statuses(store) == []

    async def test_changes_are_shown_until_the_end(self, store: Store) -> None:
        job_id = await enqueue(store)
        seen: list[Job] = []
        leases: list[Lease] = []
        async with asyncio.timeout(PATIENCE):
            async for job in store.reader.watch([job_id]):
                seen.append(job)
                if job.status is Status.QUEUED:
                    leases = await claim_all(store)
                elif job.status is Status.IN_PROGRESS:
                    await store.jobs.settle(OWNER, [completed(leases[0], "7")])
        assert [job.status for job in seen] == [
            Status.QUEUED,
            Status.IN_PROGRESS,
            Status.COMPLETED,
        ]
        assert seen[-1].result == "7"

    async def test_it_goes_on_until_all_of_them_are_terminal(self, store: Store) -> None:
        first, second = await enqueue(store), await enqueue(store)
        ends: list[str] = []
        async with asyncio.timeout(PATIENCE):
            async for job in store.reader.watch([first, second]):
                if job.status.terminal:
                    ends.append(job.id)
                await store.jobs.cancel([second if job.id == first else first], "no")
        assert sorted(ends) == sorted([first, second])

    async def test_a_failed_job_is_not_the_end(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [failed(lease)])
        seen = []
        async with asyncio.timeout(PATIENCE):
            async for job in store.reader.watch([lease.id]):
                seen.append(job.status)
                await store.jobs.cancel([lease.id], "enough")
        assert seen == [Status.FAILED, Status.CANCELLED]

    async def test_a_job_pruned_meanwhile_ends_the_watch(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        seen = []
        async with asyncio.timeout(PATIENCE):
            async for job in store.reader.watch([job_id]):
                seen.append(job.status)
                await store.jobs.cancel([job_id], "no")
                clock.advance(seconds=1)
                await store.upkeep.prune(Retention(keep_ms={Status.CANCELLED: 0}))
        assert seen == [Status.QUEUED]


class TestSubscription:
    """Hears of changes made by this or any other process."""

    async def test_an_enqueue_is_heard(self, store: Store) -> None:
        subscription = store.subscribe()
        try:
            await enqueue(store)
            assert await subscription.wait(PATIENCE)
        finally:
            subscription.close()

    async def test_a_change_is_heard_by_one_who_already_waits(self, store: Store) -> None:
        subscription = store.subscribe()
        try:
            async with asyncio.TaskGroup() as group:
                heard = group.create_task(subscription.wait(PATIENCE))
                await enqueue(store)
            assert heard.result()
        finally:
            subscription.close()

    async def test_silence_ends_with_the_time(self, store: Store) -> None:
        subscription = store.subscribe()
        waits: list[tuple[bool, float]] = []
        try:
            # Where it takes a moment to listen, that it does now may count as a change.
            for _ in range(1 + WAYS_TO_LISTEN):
                began = time.monotonic()
                async with asyncio.timeout(PATIENCE):
                    heard = await subscription.wait(SILENCE)
                waits.append((heard, time.monotonic() - began))
        finally:
            subscription.close()
        silent = [seconds for heard, seconds in waits if not heard]
        assert silent
        assert min(silent) >= SILENCE * 0.9
