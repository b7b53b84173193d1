"""Questions about jobs in SQL."""

from collections.abc import AsyncGenerator, Sequence

from penstock.model.job import Job
from penstock.store.contract import (
    Dependencies,
    Execution,
    Found,
    FoundIds,
    JobFilter,
    LogLine,
    Standing,
)
from penstock.store.contract.watch import watch
from penstock.store.relational import lookup
from penstock.store.relational.database import Database
from penstock.store.relational.edges import dependencies
from penstock.store.relational.search import Narrow, by_status, find, search, search_ids
from penstock.store.relational.standing import standing


class RelationalReader:
    """`JobReader` in SQL."""

    def __init__(self, database: Database, narrow: Narrow = by_status) -> None:
        self._db = database
        self._narrow = narrow

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        return await self._db.read(lambda tx: lookup.get(tx, ids))

    async def find(self, where: JobFilter) -> list[Job]:
        """A page of jobs, newest first."""
        return await self._db.read(lambda tx: find(tx, where, self._narrow))

    async def search(self, where: JobFilter) -> Found:
        """A page of jobs, newest first, in bounded time."""
        return await self._db.read(lambda tx: search(tx, where, self._narrow))

    async def search_ids(self, where: JobFilter) -> FoundIds:
        """The ids of such a page."""
        return await self._db.read(lambda tx: search_ids(tx, where, self._narrow))

    async def running(self, limit: int = 50) -> list[Job]:
        """Jobs under a lease, the longest running first."""
        return await self._db.read(
            lambda tx: lookup.get(tx, [row[0] for row in tx.rows("running_ids", (limit,))])
        )

    async def executions(self, job_id: str) -> list[Execution]:
        """A job's executions, oldest first."""
        return await self._db.read(lambda tx: lookup.executions(tx, job_id))

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The latest lines its handler kept."""
        return await self._db.read(lambda tx: lookup.logs(tx, job_id, limit))

    async def dependencies(self, job_id: str, limit: int = 1000) -> Dependencies:
        """The edges of a job in both directions."""
        return await self._db.read(lambda tx: dependencies(tx, job_id, limit))

    async def waiting(self, after: str | None = None, limit: int = 1000) -> list[Job]:
        """A page of all jobs that have not ended and do not run."""
        return await self._db.read(lambda tx: lookup.waiting(tx, after, limit))

    async def standing(self, job_id: str) -> Standing | None:
        """All that decides whether a job runs now."""
        return await self._db.read(lambda tx: standing(tx, job_id))

    def watch(self, ids: Sequence[str]) -> AsyncGenerator[Job, None]:
        """Each job now and whenever it changes, until all are terminal."""
        return watch(self.get, self._db.subscribe, ids)
