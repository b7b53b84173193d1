"""The SQLite store: one file, one writer, many readers."""

import asyncio
from pathlib import Path

import apsw

from penstock.model.clock import Clock, SystemClock
from penstock.store.contract import Durability
from penstock.store.relational.store import RelationalStore
from penstock.store.sqlite.database import SqliteDatabase, exists
from penstock.store.sqlite.inspect import inspect
from penstock.store.sqlite.jobs import SqliteJobs


class SqliteStore(RelationalStore[SqliteDatabase]):
    """One installation of penstock in one SQLite file."""

    def __init__(self, url: str, path: Path | None, clock: Clock | None = None) -> None:
        database = SqliteDatabase(path, clock or SystemClock())
        super().__init__(url, database, database)
        self.jobs = SqliteJobs(database)

    async def exists(self) -> bool:
        """Tell whether there is a file with an installation in it."""
        return self._db.path is None or await asyncio.to_thread(exists, self._db.path)

    async def inspect(self) -> Durability:
        """Check every promise this store makes."""
        return await self._db.read(lambda tx: inspect(tx, self._db.path))

    @property
    def path(self) -> Path | None:
        """The file, unless it is in memory."""
        return self._db.path

    def connection(self) -> apsw.Connection:
        """A connection whose transaction an enqueue can join."""
        return self._db.lend()
