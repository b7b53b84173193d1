"""The PostgreSQL store: a schema of its own in a database that many processes share."""

import asyncio
from typing import Any

import psycopg

from penstock.model.clock import Clock, ServerClock
from penstock.store.contract import Durability
from penstock.store.postgres.connect import address_of
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.inspect import inspect
from penstock.store.postgres.jobs import PostgresJobs
from penstock.store.postgres.lend import lend
from penstock.store.postgres.metrics import PostgresMetrics
from penstock.store.postgres.migrate import exists
from penstock.store.postgres.reader import PostgresReader
from penstock.store.postgres.transfer import PostgresTransfer
from penstock.store.relational.store import RelationalStore


class PostgresStore(RelationalStore[PostgresDatabase]):
    """One installation of penstock in one schema."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        database = PostgresDatabase(address_of(url), clock or ServerClock())
        super().__init__(url, database, database.beside)
        self.jobs = PostgresJobs(database)
        self.reader = PostgresReader(database)
        self.metrics = PostgresMetrics(database.beside)
        self.transfer = PostgresTransfer(database)

    async def exists(self) -> bool:
        """Whether the schema holds an installation."""
        return await asyncio.to_thread(exists, self._db.address)

    async def inspect(self) -> Durability:
        """Check every promise this store makes."""
        return await self._db.read(inspect)

    def connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection whose transaction an enqueue can join."""
        return lend(self._db.address)
