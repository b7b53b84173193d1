"""The leader's passes on Redis."""

from penstock.store.contract import Fate, Pruned, Rescued, Retention
from penstock.store.redis.courier import Courier
from penstock.store.redis.prune import prune
from penstock.store.redis.release import sweep


class RedisUpkeep:
    """`Upkeep` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    async def lead(self, role: str, owner: str, term_ms: int) -> bool:
        """Take or keep the leadership for a term."""
        return bool(await self._courier.call("lead", role, owner, term_ms))

    async def resign(self, role: str, owner: str) -> None:
        """Give the leadership up at once."""
        await self._courier.call("resign", role, owner)

    async def stage(self, limit: int = 1000) -> int:
        """Queue waiting jobs that fell due."""
        queued: int = await self._courier.call("stage", limit)
        return queued

    async def expire(self, limit: int = 1000) -> list[str]:
        """Dead-letter waiting jobs past their expiry."""
        return [job_id.decode() for job_id in await self._courier.call("expire", limit)]

    async def rescue(
        self, *, owner: str | None = None, max_rescues: int = 3, limit: int = 1000
    ) -> list[Rescued]:
        """Take away leases that ran out, or all leases of a dead owner."""
        taken = await self._courier.call("rescue", owner or "", max_rescues, limit)
        rows = ([part.decode() for part in row] for row in taken)
        return [Rescued(job_id, type_, name, Fate(fate)) for job_id, type_, name, fate in rows]

    async def release(self, limit: int = 1000) -> int:
        """Close edges whose parent has ended."""
        return await sweep(self._courier, limit)

    async def prune(self, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention."""
        return await prune(self._courier, retention, limit)
