"""Whatever is done to a graph of jobs, its edges and its jobs agree."""

from collections.abc import Awaitable, Callable
from random import Random

import pytest

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue
from penstock.model.errors import DependencyCycle, IllegalTransition, ParentNotFound
from penstock.model.job import Lease
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof import LONG
from proof.conformance.build import (
    OWNER,
    Ending,
    a_job,
    buried,
    cancelled,
    claim_all,
    completed,
    crashed,
    failed,
    handed_back,
    snoozed,
)
from proof.conformance.keys import EVERYTHING

ENDINGS: list[Ending] = [
    *(completed, completed, completed, completed, completed, completed),
    *(buried, cancelled, failed, snoozed, crashed, handed_back),
]
WAITING = (Status.PENDING, Status.PAUSED)


class _Graph:
    """Does one random thing after another to jobs and the edges between them."""

    def __init__(self, store: Store, clock: FakeClock, seed: int) -> None:
        self.store = store
        self.clock = clock
        self.random = Random(seed)
        self.leases: list[Lease] = []
        self.ids: list[str] = []
        self.steps: list[Callable[[], Awaitable[object]]] = [
            *(self.enqueue, self.enqueue, self.claim, self.claim, self.settle, self.settle),
            *(self.depend, self.cancel, self.requeue, self.requeue, self.pause, self.resume),
            *(self.pass_time, store.upkeep.stage, store.upkeep.expire, store.upkeep.rescue),
            self.prune,
        ]

    def edge(self) -> Edge:
        kind = self.random.choice([kind for kind in EdgeKind if kind is not EdgeKind.ORDER])
        return Edge(
            parent_id=self.random.choice(self.ids),
            kind=kind,
            argument="value" if kind is EdgeKind.DATA else None,
            condition="result == 7" if kind is EdgeKind.CONDITIONAL else None,
            on_failure=self.random.choice(list(OnFailure)),
            on_requeue=self.random.choice(list(OnRequeue)),
        )

    async def enqueue(self) -> None:
        count = self.random.randrange(4) if self.ids else 0
        edges = {edge.parent_id: edge for edge in (self.edge() for _ in range(count))}
        job = a_job(
            after=tuple(edges.values()),
            delay_ms=self.random.choice((0, 0, 5_000)),
            expires_in_ms=self.random.choice((None, None, 30_000)),
        )
        try:
            await self.store.jobs.enqueue([job])
        except ParentNotFound:
            return
        self.ids.append(job.id)

    async def depend(self) -> None:
        if self.ids:
            try:
                await self.store.jobs.depend(self.random.choice(self.ids), [self.edge()])
            except (IllegalTransition, DependencyCycle, ParentNotFound, JobNotFound):
                return

    async def claim(self) -> None:
        self.leases += await claim_all(self.store, limit=3)

    async def settle(self) -> None:
        if self.leases:
            lease = self.leases.pop(self.random.randrange(len(self.leases)))
            result = self.random.choice(("7", "8"))
            ending = self.random.choice(ENDINGS)
            made = completed(lease, result) if ending is completed else ending(lease)
            await self.store.jobs.settle(OWNER, [made])

    async def _some(self, *statuses: Status) -> list[str]:
        found = [job for job in await self.store.reader.get(self.ids) if job.status in statuses]
        return [job.id for job in self.random.sample(found, min(len(found), 2))]

    async def cancel(self) -> None:
        await self.store.jobs.cancel(await self._some(*WAITING, Status.IN_PROGRESS), "no")

    async def requeue(self) -> None:
        await self.store.jobs.requeue(await self._some(Status.CANCELLED, Status.DEAD_LETTER))

    async def pause(self) -> None:
        for job_id in await self._some(Status.PENDING):
            await self.store.controls.pause(PauseScope.JOB, job_id)

    async def resume(self) -> None:
        for job_id in await self._some(Status.PAUSED):
            await self.store.controls.resume(PauseScope.JOB, job_id)

    async def pass_time(self) -> None:
        self.clock.advance(self.random.choice((1, 10, 61)))

    async def prune(self) -> None:
        if self.random.random() < 0.2:
            await self.store.upkeep.prune(EVERYTHING)

    async def check(self) -> None:
        """Open edges are counted, lead to parents that have not ended, and hold the child."""
        for job in await self.store.reader.get(self.ids):
            edges = (await self.store.reader.dependencies(job.id)).parents
            opened = [edge for edge in edges if edge.outcome is None]
            assert job.waiting_on == len(opened)
            for edge in opened:
                assert edge.parent_status is not None
                assert not edge.parent_status.terminal
            if opened:
                assert job.status in (*WAITING, Status.CANCELLED, Status.DEAD_LETTER)
        assert await self.store.upkeep.release() == 0

    async def finish(self) -> None:
        """Let everything run to its end."""
        for pause in await self.store.controls.pauses():
            await self.store.controls.resume(pause.scope, pause.name)
        for _ in range(1_000):
            self.clock.advance(seconds=10)
            await self.store.upkeep.rescue(owner=OWNER)
            leases = await claim_all(self.store)
            await self.store.jobs.settle(OWNER, [completed(lease, "7") for lease in leases])
            if not leases and not await self.store.reader.waiting(limit=1):
                return
        raise AssertionError("some job waits for ever")


class TestGraphs:
    """Random graphs under random treatment."""

    @pytest.mark.parametrize("seed", range(12 if LONG else 2))
    async def test_edges_and_jobs_agree_and_everything_ends(
        self, store: Store, clock: FakeClock, seed: int
    ) -> None:
        graph = _Graph(store, clock, seed)
        for _ in range(120 if LONG else 80):
            await graph.random.choice(graph.steps)()
            await graph.check()
        await graph.finish()
        await graph.check()
