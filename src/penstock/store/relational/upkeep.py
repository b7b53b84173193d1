"""The leader's passes in SQL."""

from penstock.store.contract import Pruned, Rescued, Retention
from penstock.store.relational import rescue
from penstock.store.relational.claim import stage
from penstock.store.relational.database import Database
from penstock.store.relational.expire import expire
from penstock.store.relational.prune import prune
from penstock.store.relational.release import sweep
from penstock.store.relational.transaction import Transaction


class RelationalUpkeep:
    """`Upkeep` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def lead(self, role: str, owner: str, term_ms: int) -> bool:
        """Take or keep the leadership for a term."""

        def take(tx: Transaction) -> bool:
            row = {"role": role, "owner": owner, "monotonic": tx.monotonic}
            return tx.many("lead", (row | {"until": tx.monotonic + term_ms},)) == 1

        return await self._db.write(take)

    async def resign(self, role: str, owner: str) -> None:
        """Give the leadership up at once."""
        await self._db.write(lambda tx: tx.run("resign", (role, owner)))

    async def stage(self, limit: int = 1000) -> int:
        """Queue waiting jobs that fell due."""
        return await self._db.write(lambda tx: stage(tx, limit))

    async def expire(self, limit: int = 1000) -> list[str]:
        """Dead-letter waiting jobs past their expiry."""
        return await self._db.write(lambda tx: expire(tx, limit))

    async def rescue(
        self, *, owner: str | None = None, max_rescues: int = 3, limit: int = 1000
    ) -> list[Rescued]:
        """Take away leases that ran out, or all leases of a dead owner."""
        return await self._db.write(lambda tx: rescue.rescue(tx, owner, max_rescues, limit))

    async def release(self, limit: int = 1000) -> int:
        """Close edges whose parent has ended."""
        return await self._db.write(lambda tx: sweep(tx, limit))

    async def prune(self, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention."""
        return await self._db.write(lambda tx: prune(tx, retention, limit))
