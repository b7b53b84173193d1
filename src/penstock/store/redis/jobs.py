"""The life of jobs on Redis."""

from collections.abc import Sequence

from penstock.model.dependency import Edge
from penstock.model.errors import NoTransactions
from penstock.model.job import Enqueued, NewJob
from penstock.model.settlement import Settlement
from penstock.store.contract import Claim, Claimed, Report
from penstock.store.redis import operate, settle
from penstock.store.redis.claim import Claims
from penstock.store.redis.courier import Courier, ThreadCourier
from penstock.store.redis.enqueue import enqueue
from penstock.store.redis.gates import queue_depths


class RedisJobs:
    """`JobStore` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._in_thread = ThreadCourier(courier.server, courier.given_clock)
        self._claims = Claims(courier)

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs; a caller's transaction is refused, because Redis has none."""
        if connection is not None:
            raise NoTransactions(self._courier.server.url)
        return await enqueue(self._courier, jobs) if jobs else []

    def enqueue_now(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue from a thread that has no event loop."""
        return self._in_thread.run(enqueue(self._in_thread, jobs)) if jobs else []

    async def depend(self, child_id: str, edges: Sequence[Edge]) -> None:
        """Have a job that has not been queued yet wait for more parents."""
        await operate.depend(self._courier, child_id, edges)

    async def depth(self, queue: str, up_to: int) -> int:
        """How many jobs are queued there, counted no further than asked."""
        return min(up_to, (await queue_depths(self._courier, [queue]))[queue])

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs."""
        return await self._claims.claim(claim)

    async def start(self, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        """Mark prefetched leases as started."""
        if leases:
            marked = [part for lease in leases for part in lease]
            await self._courier.call("start", owner, *marked)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await settle.settle(self._courier, owner, settlements)

    async def report(self, owner: str, reports: Sequence[Report]) -> list[str]:
        """Write progress, checkpoints and logs."""
        return await settle.report(self._courier, owner, reports)

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop."""
        return await operate.cancel(self._courier, ids, reason)

    async def requeue(
        self, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        """Give ended jobs a fresh budget."""
        return await operate.requeue(self._courier, ids, spread_ms, delay_ms)

    async def amend(self, job_id: str, payload: str) -> None:
        """Give an ended job other arguments."""
        await operate.amend(self._courier, job_id, payload)
