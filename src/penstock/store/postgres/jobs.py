"""The life of jobs on PostgreSQL."""

from collections.abc import Sequence

from penstock.model.clock import ServerClock
from penstock.model.job import Enqueued, NewJob
from penstock.model.settlement import Settlement
from penstock.store.contract import Claim, Claimed
from penstock.store.postgres.claim import ClaimTrip, PostgresClaims
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.enqueue import EnqueueTrip, enqueue_all
from penstock.store.postgres.foreign.join import ForeignConnections
from penstock.store.postgres.settle import settle_all
from penstock.store.relational.claim import Turns
from penstock.store.relational.jobs import RelationalJobs

APART = 50


class PostgresJobs(RelationalJobs):
    """`JobStore` on PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        trusted = isinstance(database.clock, ServerClock)
        turns = Turns()
        self._small = PostgresClaims(turns, trusted=trusted)
        super().__init__(database, self._small)
        self._database = database
        self._foreign = ForeignConnections(database)
        self._large = PostgresClaims(turns, trusted=trusted)

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs, in the caller's transaction when a connection is given."""
        if not jobs:
            return []
        if connection is not None:
            return await self._foreign.enqueue(connection, lambda tx: enqueue_all(tx, jobs))
        return await self._database.write(EnqueueTrip(jobs), brief=len(jobs) == 1)

    def enqueue_now(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs in the calling thread, which has no event loop."""
        return self._database.parts.writer.call(EnqueueTrip(jobs)) if jobs else []

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs: a few in the commit that settles others, many beside it."""
        if claim.limit < APART:
            return await self._database.write(ClaimTrip(self._small, claim), brief=True)
        return await self._database.write_apart(ClaimTrip(self._large, claim), brief=True)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await self._database.write(lambda tx: settle_all(tx, owner, settlements))
