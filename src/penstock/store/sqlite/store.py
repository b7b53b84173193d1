"""The SQLite store: one file, one writer, many readers."""

import asyncio
from pathlib import Path

import apsw

from penstock.model.clock import Clock, SystemClock
from penstock.model.moves import refuse_moved
from penstock.store.contract import Durability
from penstock.store.relational.controls import RelationalControls
from penstock.store.relational.dead import RelationalDeadLetters
from penstock.store.relational.leases import RelationalLeases
from penstock.store.relational.metrics import RelationalMetrics
from penstock.store.relational.reader import RelationalReader
from penstock.store.relational.schedules import RelationalSchedules
from penstock.store.relational.signals import Listener
from penstock.store.relational.transfer import RelationalTransfer
from penstock.store.relational.upkeep import RelationalUpkeep
from penstock.store.relational.workers import RelationalWorkers
from penstock.store.sqlite.backup import backup
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.inspect import inspect
from penstock.store.sqlite.jobs import SqliteJobs


class SqliteStore:
    """One installation of penstock in one SQLite file."""

    def __init__(self, url: str, path: Path | None, clock: Clock | None = None) -> None:
        self.url = url
        self.clock: Clock = clock or SystemClock()
        self._db = SqliteDatabase(path, self.clock)
        self.jobs = SqliteJobs(self._db)
        self.leases = RelationalLeases(self._db)
        self.reader = RelationalReader(self._db)
        self.dead = RelationalDeadLetters(self._db)
        self.controls = RelationalControls(self._db)
        self.schedules = RelationalSchedules(self._db)
        self.workers = RelationalWorkers(self._db)
        self.metrics = RelationalMetrics(self._db)
        self.upkeep = RelationalUpkeep(self._db)
        self.transfer = RelationalTransfer(self._db)

    async def exists(self) -> bool:
        """Whether there is a file."""
        return self._db.path is None or await asyncio.to_thread(self._db.path.exists)

    async def open(self, *, moving: bool = False) -> None:
        """Connect, check the promises, migrate."""
        await asyncio.to_thread(self._db.open)
        try:
            if not moving:
                refuse_moved(self.url, await self.transfer.marks())
        except BaseException:
            await self.close()
            raise

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
