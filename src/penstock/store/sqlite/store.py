"""The SQLite store: one file, one writer, many readers."""

import asyncio
from pathlib import Path

import apsw

from penstock.model.clock import Clock, SystemClock
from penstock.store.contract import Durability
from penstock.store.relational.store import RelationalStore
from penstock.store.sqlite.backup import backup
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.inspect import inspect
from penstock.store.sqlite.jobs import SqliteJobs


class SqliteStore(RelationalStore[SqliteDatabase]):
    """One installation of penstock in one SQLite file."""

    def __init__(self, url: str, path: Path | None, clock: Clock | None = None) -> None:
        database = SqliteDatabase(path, clock or SystemClock())
        super().__init__(url, database, database)
        self.jobs = SqliteJobs(database)

    async def exists(self) -> bool:
        """Whether there is a file."""
        return self._db.path is None or await asyncio.to_thread(self._db.path.exists)

    async def inspect(self) -> Durability:
        """Check every promise this store makes."""
        return await self._db.read(lambda tx: inspect(tx, self._db.path))

    async def backup(self, target: Path) -> int:
        """Copy the installation while it runs, and verify the copy."""
        return await asyncio.to_thread(backup, self._db.path, target)

    def connection(self) -> apsw.Connection:
        """A connection whose transaction an enqueue can join."""
        return self._db.lend()
