"""What the stores that speak SQL are made of."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from typing import Generic, Protocol, TypeVar

from penstock.model.transfer import refuse_moved
from penstock.store.contract import Snapshot, Subscription
from penstock.store.relational.changes import RelationalChanges
from penstock.store.relational.controls import RelationalControls
from penstock.store.relational.dead import RelationalDeadLetters
from penstock.store.relational.jobs import RelationalLeases
from penstock.store.relational.metrics import RelationalMetrics
from penstock.store.relational.reader import RelationalReader
from penstock.store.relational.records import RelationalAuditLog, RelationalRecords
from penstock.store.relational.schedules import RelationalSchedules
from penstock.store.relational.tables import RelationalTables
from penstock.store.relational.transaction import Database, Transaction
from penstock.store.relational.transfer import RelationalTransfer
from penstock.store.relational.upkeep import RelationalUpkeep
from penstock.store.relational.workers import RelationalWorkers


class OwnDatabase(Database, Protocol):
    """A database that the store opens and closes."""

    def open(self) -> tuple[int, int]:
        """Connect, check, migrate; the schema versions before and after."""
        ...

    def close(self) -> None:
        """Commit what was submitted and let go."""
        ...

    def scrub(self) -> list[str]:
        """Have the bytes of what was deleted leave the disk; what is left to do, in sentences."""
        ...

    def hold(self) -> AbstractContextManager[Transaction]:
        """Hold one moment of the database, in a transaction that only reads."""
        ...


D = TypeVar("D", bound=OwnDatabase)


class RelationalStore(Generic[D]):
    """A `Store` in SQL, but for its jobs, its checks and its copies, which the dialect knows.

    `beside` is the same database, for what may take a while and must not hold up a worker.
    """

    tables: RelationalTables
    transfer: RelationalTransfer

    def __init__(self, url: str, database: D, beside: Database) -> None:
        self.url = url
        self.inbox = None
        self.clock = database.clock
        self._db = database
        self.leases = RelationalLeases(database)
        self.reader = RelationalReader(database)
        self.dead = RelationalDeadLetters(beside)
        self.controls = RelationalControls(beside)
        self.schedules = RelationalSchedules(beside)
        self.workers = RelationalWorkers(beside)
        self.metrics = RelationalMetrics(beside)
        self.records = RelationalRecords(beside)
        self.audit = RelationalAuditLog(beside)
        self.upkeep = RelationalUpkeep(beside)
        self.changes = RelationalChanges(beside)

    async def open(self, *, moving: bool = False) -> None:
        """Connect, check the promises, migrate."""
        self.tables.forget()
        await self.migrate()
        try:
            if not moving:
                refuse_moved(self.url, await self.transfer.marks())
        except BaseException:
            await self.close()
            raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Snapshot, None]:
        """Hold one moment of the whole installation."""
        with ExitStack() as held:
            tx = await asyncio.to_thread(held.enter_context, self._db.hold())
            moment = self.transfer.at(tx)
            moment.tables = self.tables.at(tx)
            yield moment

    async def close(self) -> None:
        """Finish what is written and let go."""
        await asyncio.to_thread(self._db.close)

    async def dispatch_answers(self) -> bool | None:
        """There is none."""
        return None

    async def scrub(self) -> list[str]:
        """Have the bytes of what was deleted leave the disk; what is left to do, in sentences."""
        return await asyncio.to_thread(self._db.scrub)

    def subscribe(self) -> Subscription:
        """Listen for changes made by this or any other process."""
        return self._db.subscribe()

    async def migrate(self) -> tuple[int, int]:
        """Bring the schema up to date; the versions before and after."""
        return await asyncio.to_thread(self._db.open)
