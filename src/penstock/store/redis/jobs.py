"""The life of jobs on Redis."""

from collections.abc import Collection, Sequence

from msgspec.json import encode

from penstock.model.dependency import Edge
from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.job import Enqueued, NewJob
from penstock.model.outcome import Settlement
from penstock.model.redact import redact
from penstock.model.store_errors import NoTransactions
from penstock.store.contract import Claim, Claimed, Held, Renewal, Report
from penstock.store.redis import settle
from penstock.store.redis.claim import Claims, queue_depths
from penstock.store.redis.enqueue import as_arguments, enqueue, enqueued
from penstock.store.redis.release import decided, edges_as_rows
from penstock.store.redis.scripts import Scripts, ThreadScripts


async def cancel(scripts: Scripts, ids: Sequence[str], reason: str) -> dict[str, str]:
    """Cancel waiting jobs at once and ask running ones to stop; their status afterwards."""
    if not ids:
        return {}
    told = redact(str(reason))[:MESSAGE_LIMIT]
    statuses = await decided(scripts, "cancel", told, *ids)
    return {job_id: status.decode() for job_id, status in zip(ids, statuses, strict=True)}


async def requeue(
    scripts: Scripts, ids: Sequence[str], spread_ms: float, delay_ms: float
) -> list[str]:
    """Give ended jobs a fresh budget, all of them or none, each due a while after the last."""
    if ids:
        due = [round(delay_ms + place * spread_ms) for place in range(len(ids))]
        pairs = zip(ids, due, strict=True)
        await decided(scripts, "requeue", *(part for pair in pairs for part in pair))
    return list(ids)


async def amend(scripts: Scripts, job_id: str, payload: str) -> None:
    """Give an ended job other arguments, for its next requeue."""
    await decided(scripts, "amend", job_id, payload)


async def depend(scripts: Scripts, child_id: str, edges: Sequence[Edge]) -> None:
    """Have a job that has not joined the queue yet wait for more parents."""
    await decided(scripts, "depend", child_id, encode(edges_as_rows(edges)))


class RedisLeases:
    """`Leases` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    def renew(
        self,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds, and what it was granted without knowing it yet."""
        leases = [part for lease in held for part in (lease.id, lease.fence, lease.lease_ms)]
        unheard = "" if unheard_ms is None else unheard_ms
        lost, cancelled = self._scripts.call_now(
            "renew", owner, unheard, len(given_up), *given_up, *leases
        )
        return Renewal(_texts(lost), _texts(cancelled))

    def held(self, owner: str) -> list[str]:
        """The ids of all jobs the owner has leased."""
        key = f"{self._scripts.prefix}leases:{owner}"
        return _texts(self._scripts.ask_now("ZRANGE", key, 0, -1))

    def cancel_requests(self, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        key = f"{self._scripts.prefix}stops:{owner}"
        return _texts(self._scripts.ask_now("SMEMBERS", key))


def _texts(ids: Collection[bytes]) -> list[str]:
    return [job_id.decode() for job_id in ids]


class RedisInbox:
    """`Inbox` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def deliver(self, job: NewJob) -> Enqueued:
        """Insert a job unless it was delivered before, whatever has become of it."""
        arguments = as_arguments([job])
        return enqueued([job], await decided(self._scripts, "deliver", *arguments))[0]

    async def confirm(self, ids: Sequence[str]) -> None:
        """Remember jobs whose rows are gone for a day more."""
        if ids:
            await self._scripts.call("confirm", *ids)


class RedisJobs:
    """`JobStore` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._in_thread = ThreadScripts(scripts.server, scripts.given_clock)
        self._claims = Claims(scripts)

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs; a caller's transaction is refused, because Redis has none."""
        if connection is not None:
            raise NoTransactions(self._scripts.server.url)
        return await enqueue(self._scripts, jobs) if jobs else []

    def enqueue_now(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue from a thread that has no event loop."""
        return self._in_thread.run(enqueue(self._in_thread, jobs)) if jobs else []

    async def depend(self, child_id: str, edges: Sequence[Edge]) -> None:
        """Have a job that has not been queued yet wait for more parents."""
        await depend(self._scripts, child_id, edges)

    async def depth(self, queue: str, up_to: int) -> int:
        """How many jobs are queued there, counted no further than asked."""
        return min(up_to, (await queue_depths(self._scripts, [queue]))[queue])

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs."""
        return await self._claims.claim(claim)

    async def start(self, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        """Mark prefetched leases as started."""
        if leases:
            marked = [part for lease in leases for part in lease]
            await self._scripts.call("start", owner, *marked)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await settle.settle(self._scripts, owner, settlements)

    async def report(self, owner: str, reports: Sequence[Report]) -> list[str]:
        """Write progress, checkpoints and logs."""
        return await settle.report(self._scripts, owner, reports)

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop."""
        return await cancel(self._scripts, ids, reason)

    async def requeue(
        self, ids: Sequence[str], *, spread_ms: float = 0, delay_ms: float = 0
    ) -> list[str]:
        """Give ended jobs a fresh budget."""
        return await requeue(self._scripts, ids, spread_ms, delay_ms)

    async def amend(self, job_id: str, payload: str) -> None:
        """Give an ended job other arguments."""
        await amend(self._scripts, job_id, payload)
