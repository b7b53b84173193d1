"""The life of jobs, where what became ready is told to Redis after the commit."""

import asyncio
from collections.abc import Sequence
from functools import partial

from penstock.model.clock import ServerClock
from penstock.model.dependency import Edge
from penstock.model.job import Enqueued, NewJob
from penstock.model.settlement import Completed, Failed, Settlement, Snoozed
from penstock.store.contract import Claim, Claimed
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.enqueue import EnqueueTrip
from penstock.store.postgres.jobs import PostgresJobs
from penstock.store.postgres.settle import settle_all
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres_redis.claim import DispatchedClaims, Seen
from penstock.store.postgres_redis.notices import Dispatch


class DispatchedJobs(PostgresJobs):
    """`JobStore` on PostgreSQL, with a window on what is ready."""

    def __init__(self, database: PostgresDatabase, dispatch: Dispatch) -> None:
        super().__init__(database)
        self._dispatch = dispatch
        trusted = isinstance(database.clock, ServerClock)
        self._dispatched = DispatchedClaims(dispatch.window, trusted=trusted)

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs; in the caller's transaction, a filling finds them after its commit."""
        if connection is not None or not jobs:
            return await super().enqueue(jobs, connection=connection)

        try:
            # Others are told below, with the ids.
            answers, now = await self._database.write(EnqueueTrip(jobs, told=False))
        except asyncio.CancelledError:
            self._dispatch.doubt()  # nobody hears what became of it
            raise
        self._dispatch.window.enqueued(jobs, answers, now)
        self._database.signal.ring()
        self._dispatch.tell()
        return answers

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs; a worker without work looks for some in Redis first."""
        claims = self._dispatched
        if self._dispatch.window.off or self._database.address.tenant is not None:
            return await super().claim(claim)  # one tenant cannot fill the windows of others
        seen: Seen = []
        if claims.looks_first:
            now = self._database.clock.now()
            looked = await self._dispatch.aside(partial(claims.look, claim, now))
            if isinstance(looked, Claimed):
                return looked
            seen = looked
        return await self._database.write(lambda tx: claims.claim(tx, claim, seen))

    async def depend(self, child_id: str, edges: Sequence[Edge]) -> None:
        """Have a job that has not been queued yet wait for more parents."""
        await super().depend(child_id, edges)
        self._dispatch.doubt()

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases, and say what became ready by that."""

        def apply(tx: PostgresTransaction) -> tuple[list[str], int, bool]:
            stale = settle_all(tx, owner, settlements)
            return stale, tx.now, tx.followed

        stale, now, followed = await self._database.write(apply)
        others = [s for s in settlements if not isinstance(s, Completed)]
        waits = [_wait_of(s) for s in others]
        if followed or None in waits:
            self._dispatch.doubt()
        elif others:
            self._dispatch.window.due(now + min(wait for wait in waits if wait is not None))
            self._dispatch.tell()
        return stale

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop."""
        after = await super().cancel(ids, reason)
        self._dispatch.doubt()
        return after

    async def requeue(
        self, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        """Give ended jobs a fresh budget."""
        requeued = await super().requeue(ids, spread_ms=spread_ms, delay_ms=delay_ms)
        self._dispatch.doubt()
        return requeued


def _wait_of(settlement: Settlement) -> int | None:
    """How long until the job may run again, where that is all that follows."""
    if isinstance(settlement, Failed):
        return settlement.retry_in_ms
    return settlement.delay_ms if isinstance(settlement, Snoozed) else None
