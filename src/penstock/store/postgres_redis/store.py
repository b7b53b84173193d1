"""PostgreSQL with Redis beside it: the one is the truth, the other makes it quicker to find."""

import asyncio

from penstock.model.clock import Clock
from penstock.store.contract import Durability
from penstock.store.postgres.store import PostgresStore
from penstock.store.postgres_redis.database import Doubting
from penstock.store.postgres_redis.jobs import DispatchedJobs
from penstock.store.postgres_redis.notices import Dispatch
from penstock.store.postgres_redis.window import Pace, Window
from penstock.store.postgres_redis.wire import Wire
from penstock.store.relational.controls import RelationalControls
from penstock.store.relational.dead import RelationalDeadLetters
from penstock.store.relational.schedules import RelationalSchedules
from penstock.store.relational.upkeep import RelationalUpkeep


class PostgresRedisStore(PostgresStore):
    """One installation in a schema of PostgreSQL; its Redis may be emptied or lost at any time."""

    def __init__(
        self, url: str, dispatch: str, clock: Clock | None = None, pace: Pace | None = None
    ) -> None:
        super().__init__(url, clock)
        self._wire = Wire(dispatch)
        self._dispatch = Dispatch(self._wire, Window(self._wire, pace or Pace(jobs=0)))
        self._db.notices = self._dispatch.make_notices
        beside = Doubting(self._db, self._dispatch)
        self.jobs = DispatchedJobs(self._db, self._dispatch)
        self.dead = RelationalDeadLetters(beside)
        self.controls = RelationalControls(beside)
        self.schedules = RelationalSchedules(beside)
        self.upkeep = RelationalUpkeep(beside)

    async def open(self, *, moving: bool = False) -> None:
        """Connect to both; without Redis it opens all the same."""
        await asyncio.to_thread(self._wire.open)
        try:
            await super().open(moving=moving)
        except BaseException:
            await self._wire.close()
            raise

    async def close(self) -> None:
        """Finish what is written and told, and let go."""
        await super().close()
        await asyncio.to_thread(self._dispatch.close)
        await self._wire.close()

    async def inspect(self) -> Durability:
        """Check every promise; those of PostgreSQL, and whether Redis answers."""
        found = await super().inspect()
        answers = await self.dispatch_answers()
        state = "answers" if answers else "away: work is found by PostgreSQL alone"
        return Durability(found.promise, [*found.checks, ("dispatch", answers, state)])

    async def dispatch_answers(self) -> bool:
        """Whether Redis answers, within half a second."""
        return await self._dispatch.aside(self._wire.answers)
