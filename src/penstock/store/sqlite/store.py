"""The SQLite store: one file, one writer, many readers."""

import asyncio
from pathlib import Path

import apsw

from penstock.model.clock import Clock, SystemClock
from penstock.store.contract import Durability
from penstock.store.sqlite.backup import backup
from penstock.store.sqlite.controls import SqliteControls
from penstock.store.sqlite.database import Database
from penstock.store.sqlite.dead import SqliteDeadLetters
from penstock.store.sqlite.inspect import inspect
from penstock.store.sqlite.jobs import SqliteJobs
from penstock.store.sqlite.leases import SqliteLeases
from penstock.store.sqlite.metrics import SqliteMetrics
from penstock.store.sqlite.reader import SqliteReader
from penstock.store.sqlite.schedules import SqliteSchedules
from penstock.store.sqlite.signals import Listener
from penstock.store.sqlite.upkeep import SqliteUpkeep
from penstock.store.sqlite.workers import SqliteWorkers


class SqliteStore:
    """One installation of penstock in one SQLite file."""

    def __init__(self, url: str, path: Path | None, clock: Clock | None = None) -> None:
        self.url = url
        self.clock: Clock = clock or SystemClock()
        self._db = Database(path, self.clock)
        self.jobs = SqliteJobs(self._db)
        self.leases = SqliteLeases(self._db)
        self.reader = SqliteReader(self._db)
        self.dead = SqliteDeadLetters(self._db)
        self.controls = SqliteControls(self._db)
        self.schedules = SqliteSchedules(self._db)
        self.workers = SqliteWorkers(self._db)
        self.metrics = SqliteMetrics(self._db)
        self.upkeep = SqliteUpkeep(self._db)

    async def open(self) -> None:
        """Connect, check the promises, migrate."""
        await asyncio.to_thread(self._db.open)

    async def close(self) -> None:
        """Finish what is written and let go."""
        await asyncio.to_thread(self._db.close)

    def subscribe(self) -> Listener:
        """Listen for changes made by this or any other process."""
        return self._db.subscribe()

    async def migrate(self) -> tuple[int, int]:
        """Bring the schema up to date; the versions before and after."""
        return await asyncio.to_thread(self._db.open)

    async def inspect(self) -> Durability:
        """Check every promise this store makes."""
        return await self._db.read(lambda tx: inspect(tx, self._db.path))

    async def backup(self, target: Path) -> int:
        """Copy the installation while it runs, and verify the copy."""
        return await asyncio.to_thread(backup, self._db.path, target)

    def connection(self) -> apsw.Connection:
        """A connection whose transaction an enqueue can join."""
        return self._db.lend()
