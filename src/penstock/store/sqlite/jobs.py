"""The life of jobs on SQLite."""

from collections.abc import Sequence

from penstock.model.job import Enqueued, NewJob
from penstock.store.relational.enqueue import enqueue
from penstock.store.relational.jobs import RelationalJobs
from penstock.store.sqlite.claim import SqliteClaims
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.refusals import refuse_foreign_connection
from penstock.store.sqlite.transaction import SqliteSavepoint, SqliteTransaction


class SqliteJobs(RelationalJobs):
    """`JobStore` on SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, SqliteClaims())
        self._file = database

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs, in the caller's transaction when a connection is given."""
        if not jobs:
            return []
        if connection is None:
            return await self._file.write(lambda tx: enqueue(tx, jobs), brief=len(jobs) == 1)
        joined = refuse_foreign_connection(connection, self._file.name)
        with translated(self._file.name), SqliteSavepoint(joined):
            clock = self._file.clock
            return enqueue(SqliteTransaction(joined, clock.now(), clock.monotonic()), jobs)

    def enqueue_now(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue from a thread that has no event loop."""
        if not jobs:
            return []
        return self._file.write_now(lambda tx: enqueue(tx, jobs), brief=len(jobs) == 1)
