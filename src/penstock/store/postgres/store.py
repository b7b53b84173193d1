"""The PostgreSQL store: a schema of its own in a database that many processes share."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg

from penstock.model.clock import Clock, ServerClock
from penstock.model.errors import InvalidOption
from penstock.model.moves import refuse_moved
from penstock.store.contract import Durability
from penstock.store.postgres.connect import address_of
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.inspect import inspect
from penstock.store.postgres.jobs import PostgresJobs
from penstock.store.postgres.lend import lend
from penstock.store.postgres.metrics import PostgresMetrics
from penstock.store.postgres.migrate import exists
from penstock.store.postgres.transfer import PostgresTransfer
from penstock.store.relational.controls import RelationalControls
from penstock.store.relational.dead import RelationalDeadLetters
from penstock.store.relational.leases import RelationalLeases
from penstock.store.relational.reader import RelationalReader
from penstock.store.relational.schedules import RelationalSchedules
from penstock.store.relational.signals import Listener
from penstock.store.relational.upkeep import RelationalUpkeep
from penstock.store.relational.workers import RelationalWorkers


class PostgresStore:
    """One installation of penstock in one schema."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.url = url
        self.clock: Clock = clock or ServerClock()
        self._db = PostgresDatabase(address_of(url), self.clock)
        self.jobs = PostgresJobs(self._db)
        self.leases = RelationalLeases(self._db)
        self.reader = RelationalReader(self._db)
        self.dead = RelationalDeadLetters(self._db.beside)
        self.controls = RelationalControls(self._db.beside)
        self.schedules = RelationalSchedules(self._db.beside)
        self.workers = RelationalWorkers(self._db.beside)
        self.metrics = PostgresMetrics(self._db.beside)
        self.upkeep = RelationalUpkeep(self._db.beside)
        self.transfer = PostgresTransfer(self._db)

    async def exists(self) -> bool:
        """Whether the schema holds an installation."""
        return await asyncio.to_thread(exists, self._db.address)

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
        return await self._db.read(inspect)

    async def backup(self, target: Path) -> int:
        """PostgreSQL has better tools for that than a copy through a client."""
        raise InvalidOption("target", str(target), "made with pg_dump or your server's own backups")

    def connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection whose transaction an enqueue can join."""
        return lend(self._db.address)
