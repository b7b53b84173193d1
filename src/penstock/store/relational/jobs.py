"""The life of jobs in SQL."""

from collections.abc import Sequence

from msgspec.json import encode

from penstock.model.dependency import Edge
from penstock.model.settlement import Settlement
from penstock.store.contract import Claim, Claimed, Report
from penstock.store.relational import operate, settle
from penstock.store.relational.claim import Claims
from penstock.store.relational.database import Database
from penstock.store.relational.release import depend
from penstock.store.relational.transaction import Transaction


class RelationalJobs:
    """`JobStore` in SQL, but for `enqueue`, which knows the connections of its dialect."""

    def __init__(self, database: Database, claims: Claims) -> None:
        self._db = database
        self._claims = claims

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
