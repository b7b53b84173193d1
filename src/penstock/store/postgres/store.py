"""The PostgreSQL store: a schema of its own in a database that many processes share."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg

from penstock.model.clock import Clock, ServerClock
from penstock.model.job import Enqueued, NewJob
from penstock.model.outcome import Settlement
from penstock.model.states import TERMINAL
from penstock.store.contract import Claim, Claimed, Durability, QueueDepth
from penstock.store.contract.metrics import FINE_MS
from penstock.store.postgres.claim import ClaimRoundTrip, PostgresClaims
from penstock.store.postgres.connect import address_of, lend
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.enqueue import EnqueueRoundTrip, enqueue_all
from penstock.store.postgres.foreign.join import ForeignConnections
from penstock.store.postgres.inspect import inspect
from penstock.store.postgres.migrate import exists
from penstock.store.postgres.settle import settle_all
from penstock.store.postgres.tables import PostgresTables
from penstock.store.postgres.transfer import PostgresTransfer
from penstock.store.relational.claim import Turns
from penstock.store.relational.jobs import RelationalJobs
from penstock.store.relational.metrics import RelationalMetrics, roll_up
from penstock.store.relational.reader import RelationalReader
from penstock.store.relational.search import LOOKS, Wanted, by_status
from penstock.store.relational.store import RelationalStore
from penstock.store.relational.transaction import Transaction


class PostgresMetrics(RelationalMetrics):
    """`Metrics` on PostgreSQL."""

    def fold(self, tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
        """Gather what settles have appended, then roll up."""
        tx.lock("roll-up")
        tx.run("gather_counts", {"fine": FINE_MS})
        return roll_up(tx, sampled)


PLACES = 5_000
"""As many by their status: here each of them lies in another page of the table."""

FEW = 2_000
"""Up to so many jobs found by their payloads; for more, the index costs more than it saves."""


class PostgresReader(RelationalReader):
    """`JobReader` on PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database, narrow)


def narrow(tx: Transaction, wanted: Wanted) -> list[Any] | None:
    """All places where a job that fits can be, if the states or the payload tell."""
    places = by_status(tx, wanted, PLACES)
    return by_payload(tx, wanted) if places is None else places


def by_payload(tx: Transaction, wanted: Wanted) -> list[Any] | None:
    """Ended jobs by the index of their payloads, with all that live, if these are few."""
    document = wanted.document()
    if document is None:
        return None
    asked = wanted.bindings | {"looks": LOOKS, "document": document}
    living: list[Any] = []
    if wanted.statuses is None or wanted.statuses - TERMINAL:
        living = [row[0] for row in tx.rows("living_ids", asked)]
        if len(living) == LOOKS:
            return None
    ended = [row[0] for row in tx.rows("of_payload", asked | {"looks": FEW})]
    return None if len(ended) == FEW else [*living, *ended]


APART = 50


class PostgresJobs(RelationalJobs):
    """`JobStore` on PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        trusted = isinstance(database.clock, ServerClock)
        turns = Turns()
        self._small = PostgresClaims(turns, trusted=trusted)
        super().__init__(database, self._small)
        self._database = database
        self._foreign = ForeignConnections(database)
        self._large = PostgresClaims(turns, trusted=trusted)

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs, in the caller's transaction when a connection is given."""
        if not jobs:
            return []
        if connection is not None:
            return await self._foreign.enqueue(connection, lambda tx: enqueue_all(tx, jobs))
        return await self._database.write(EnqueueRoundTrip(jobs), brief=len(jobs) == 1)

    def enqueue_now(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs in the calling thread, which has no event loop."""
        return self._database.parts.writer.call(EnqueueRoundTrip(jobs)) if jobs else []

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs: a few in the commit that settles others, many beside it."""
        if claim.limit < APART:
            return await self._database.write(ClaimRoundTrip(self._small, claim), brief=True)
        return await self._database.write_apart(ClaimRoundTrip(self._large, claim), brief=True)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await self._database.write(lambda tx: settle_all(tx, owner, settlements))


class PostgresStore(RelationalStore[PostgresDatabase]):
    """One installation of penstock in one schema."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        database = PostgresDatabase(address_of(url), clock or ServerClock())
        super().__init__(url, database, database.beside)
        self.jobs = PostgresJobs(database)
        self.tables = PostgresTables(database)
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
