"""Dying at a chosen moment, as a SIGKILL would have it.

Nothing in penstock knows of this: a test's child process wraps the store of its own worker.
`arm(app.store, "before_settle")` ends the process when the worker first wants to settle.
"""

import os
from collections.abc import Sequence

from penstock.model.errors import InvalidOption
from penstock.model.job import Enqueued, NewJob
from penstock.model.outcome import Settlement
from penstock.store.contract import Claim, Claimed, JobStore, Report, Store

EXIT_CODE = 9
POINTS = ("before_claim", "claimed", "before_start", "before_settle", "settled")


def arm(store: Store, point: str, passes: int = 1) -> None:
    """End this process when it comes to `point` for the `passes`-th time."""
    if point not in POINTS:
        raise InvalidOption("failpoint", point, f"one of: {', '.join(POINTS)}")
    vars(store)["jobs"] = _Doomed(store.jobs, point, passes)


class _Doomed:
    """A `JobStore` that is fatal at one point: before a write, or after it was committed."""

    def __init__(self, jobs: JobStore, point: str, passes: int) -> None:
        self._jobs = jobs
        self._point = point
        self._passes = passes

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        return await self._jobs.enqueue(jobs, connection=connection)

    async def claim(self, claim: Claim) -> Claimed:
        self._reach("before_claim")
        claimed = await self._jobs.claim(claim)
        if claimed.leases:
            self._reach("claimed")
        return claimed

    async def start(self, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        self._reach("before_start")
        await self._jobs.start(owner, leases)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        self._reach("before_settle")
        stale = await self._jobs.settle(owner, settlements)
        self._reach("settled")
        return stale

    async def report(self, owner: str, reports: Sequence[Report]) -> list[str]:
        return await self._jobs.report(owner, reports)

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        return await self._jobs.cancel(ids, reason)

    async def requeue(self, ids: Sequence[str]) -> list[str]:
        return await self._jobs.requeue(ids)

    def _reach(self, point: str) -> None:
        if point != self._point:
            return
        self._passes -= 1
        if self._passes == 0:
            os._exit(EXIT_CODE)
