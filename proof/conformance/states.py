"""Whatever is done to jobs, they only take the steps that the table of states allows."""

from collections.abc import Awaitable, Callable
from random import Random

import pytest

from penstock.model.errors import IllegalTransition
from penstock.model.job import Lease
from penstock.model.states import ALLOWED, Status
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

ENDINGS: list[Ending] = [completed, failed, snoozed, cancelled, buried, crashed, handed_back]


class Walk:
    """Does one random thing after another."""

    def __init__(self, store: Store, clock: FakeClock, seed: int) -> None:
        self.store = store
        self.clock = clock
        self.random = Random(seed)
        self.leases: list[Lease] = []
        self.ids: list[str] = []
        self.steps: list[Callable[[], Awaitable[object]]] = [
            self.enqueue,
            self.claim,
            self.settle,
            self.settle,
            self.cancel,
            self.requeue,
            self.pass_time,
            store.upkeep.stage,
            store.upkeep.rescue,
            store.upkeep.expire,
        ]

    async def enqueue(self) -> None:
        delay_ms = self.random.choice((0, 5_000))
        expires_in_ms = self.random.choice((None, 90_000))
        jobs = [a_job(delay_ms=delay_ms, expires_in_ms=expires_in_ms) for _ in range(3)]
        self.ids += [answer.id for answer in await self.store.jobs.enqueue(jobs)]

    async def claim(self) -> None:
        self.leases += await claim_all(self.store, limit=3, start=self.random.randrange(4))

    async def settle(self) -> None:
        for lease in self.random.sample(self.leases, min(2, len(self.leases))):
            await self.store.jobs.settle(OWNER, [self.random.choice(ENDINGS)(lease)])

    async def cancel(self) -> None:
        if self.ids:
            await self.store.jobs.cancel([self.random.choice(self.ids)], "no")

    async def requeue(self) -> None:
        for job_id in self.random.sample(self.ids, min(3, len(self.ids))):
            try:
                await self.store.jobs.requeue([job_id])
            except IllegalTransition:
                continue

    async def pass_time(self) -> None:
        self.clock.advance(seconds=self.random.choice((1, 10, 61)))

    async def statuses(self) -> dict[str, Status]:
        return {job.id: job.status for job in await self.store.reader.get(self.ids)}


class TestStates:
    """A random walk, the same at every run."""

    @pytest.mark.parametrize("seed", range(5 if LONG else 2))
    async def test_only_allowed_steps_are_taken(
        self, store: Store, clock: FakeClock, seed: int
    ) -> None:
        walk = Walk(store, clock, seed)
        fences: dict[str, int] = {}
        for _ in range(150 if LONG else 100):
            # A claim stages and expires first; done apart, each is one step.
            await store.upkeep.expire()
            await store.upkeep.stage()
            before = await walk.statuses()
            await walk.random.choice(walk.steps)()
            after = await walk.statuses()
            taken = {(old, after[i]) for i, old in before.items() if after[i] is not old}
            assert taken <= ALLOWED
            jobs = await store.reader.get(walk.ids)
            assert all(job.fence >= fences.get(job.id, 0) for job in jobs)
            fences = {job.id: job.fence for job in jobs}
