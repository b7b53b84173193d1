"""The life of jobs on SQLite."""

from collections.abc import Sequence

from msgspec.json import encode

from penstock.model.dependency import Edge
from penstock.model.job import Enqueued, NewJob
from penstock.model.settlement import Settlement
from penstock.store.contract import Claim, Claimed, Report
from penstock.store.sqlite import operate, settle
from penstock.store.sqlite.claim import Claims
from penstock.store.sqlite.database import Database
from penstock.store.sqlite.enqueue import enqueue
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.refusals import refuse_foreign_connection
from penstock.store.sqlite.release import depend
from penstock.store.sqlite.transaction import Savepoint, Transaction


class SqliteJobs:
    """`JobStore` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._claims = Claims()

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs, in the caller's transaction when a connection is given."""
        if not jobs:
            return []
        if connection is None:
            return await self._db.write(lambda tx: enqueue(tx, jobs))
        joined = refuse_foreign_connection(connection, self._db.name)
        with translated(self._db.name), Savepoint(joined):
            tx = Transaction(joined, self._db.clock.now(), self._db.clock.monotonic())
            return enqueue(tx, jobs)

    async def depend(self, child_id: str, edges: Sequence[Edge]) -> None:
        """Have a job that has not been queued yet wait for more parents."""
        await self._db.write(lambda tx: depend(tx, child_id, edges))

    async def depth(self, queue: str, up_to: int) -> int:
        """How many jobs are queued there, counted no further than asked."""
        return await self._db.read(lambda tx: int(tx.value("queue_depth", (queue, up_to))))

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs."""
        return await self._db.write(lambda tx: self._claims.claim(tx, claim))

    async def start(self, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        """Mark prefetched leases as started."""

        def mark(tx: Transaction) -> None:
            started = encode(list(leases)).decode()
            tx.run("start", {"started": started, "owner": owner, "now": tx.now})

        await self._db.write(mark)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await self._db.write(lambda tx: settle.settle(tx, owner, settlements))

    async def report(self, owner: str, reports: Sequence[Report]) -> list[str]:
        """Write progress, checkpoints and logs."""
        return await self._db.write(lambda tx: settle.report(tx, owner, reports))

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop."""
        return await self._db.write(lambda tx: operate.cancel(tx, ids, reason))

    async def requeue(
        self, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        """Give ended jobs a fresh budget."""
        return await self._db.write(lambda tx: operate.requeue(tx, ids, spread_ms, delay_ms))

    async def amend(self, job_id: str, payload: str) -> None:
        """Give an ended job other arguments."""
        await self._db.write(lambda tx: operate.amend(tx, job_id, payload))
