"""PostgreSQL with Redis beside it: the one keeps and decides everything, the other wakes."""

import asyncio
from functools import partial

from penstock.model.clock import Clock
from penstock.store.contract import Durability
from penstock.store.postgres.store import PostgresStore
from penstock.store.postgres_redis.connection import RedisConnection
from penstock.store.postgres_redis.wake_ups import RedisWakeUps


class PostgresRedisStore(PostgresStore):
    """One installation in a schema of PostgreSQL; its Redis may be emptied or lost at any time."""

    def __init__(self, url: str, dispatch: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        self._redis = RedisConnection(dispatch)
        self._db.make_wake_ups = partial(RedisWakeUps, self._redis)

    async def open(self, *, moving: bool = False) -> None:
        """Connect to both; without Redis it opens all the same."""
        await asyncio.to_thread(self._redis.open)
        try:
            await super().open(moving=moving)
        except BaseException:
            await self._redis.close()
            raise

    async def close(self) -> None:
        """Finish what is written and told, and let go."""
        await super().close()
        await self._redis.close()

    async def inspect(self) -> Durability:
        """Check every promise; those of PostgreSQL, and whether Redis answers."""
        found = await super().inspect()
        answers = await self.dispatch_answers()
        state = "answers" if answers else "away: work is found by PostgreSQL alone"
        return Durability(found.promise, [*found.checks, ("dispatch", answers, state)])

    async def dispatch_answers(self) -> bool:
        """Whether Redis answers, within half a second."""
        return await asyncio.to_thread(self._redis.answers)
