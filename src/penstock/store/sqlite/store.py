"""The SQLite store: one file, one writer, many readers."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
from msgspec.json import Decoder

from penstock.model.clock import Clock, SystemClock
from penstock.model.job import Enqueued, KeyScope, Lease, NewJob
from penstock.store.contract import Claim, Durability
from penstock.store.relational.claim import Candidate, Claims, Seq, following
from penstock.store.relational.enqueue import enqueue
from penstock.store.relational.gates import Lane
from penstock.store.relational.jobs import RelationalJobs
from penstock.store.relational.store import RelationalStore
from penstock.store.relational.transaction import Transaction, readable
from penstock.store.sqlite.connect import SqliteSavepoint, SqliteTransaction
from penstock.store.sqlite.database import SqliteDatabase, exists
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.refusals import inspect, refuse_foreign_connection
from penstock.store.sqlite.tables import SqliteTables
from penstock.store.sqlite.transfer import SqliteTransfer


class _Granted(Lease, frozen=True):
    """A lease as its row is read."""

    seq: int
    key_scope: str | None


LANES_AT_ONCE = 64

_Place = tuple[int, int, int]
"""Rank, priority and seq: where a job stands in its lane."""

_lanes: Decoder[list[Lane]] = Decoder(list[Lane])
_ranked: Decoder[list[_Place]] = Decoder(list[_Place])
_leases: Decoder[list[_Granted]] = Decoder(list[_Granted])


class SqliteClaims(Claims):
    """Names jobs by their row, which is cheapest to find."""

    def lanes_after(self, tx: Transaction, start: Lane | None) -> Iterator[Lane]:
        """Where there are several lanes, ask for many of them at once."""
        lane = following(tx, start)
        while lane is not None:
            yield lane
            lane = following(tx, lane)
            if lane is not None:
                several = [lane, *_lanes.decode(tx.value("next_lanes", (*lane, LANES_AT_ONCE)))]
                yield from several
                lane = following(tx, several[-1])

    def candidates(
        self, tx: Transaction, lane: Lane, claim: Claim, chunk: int
    ) -> Iterator[Candidate]:
        """A lane's jobs by rank, each once, fetched in chunks as they are asked for."""
        first, further, bindings = "lane", "lane_after", tuple[str | int, ...](lane)
        if claim.max_priority is not None:
            first, further = "urgent_lane", "urgent_lane_after"
            bindings = (*lane, claim.max_priority)
        ranked = _ranked.decode(tx.value(first, (*bindings, chunk)))
        while True:
            for rank, _, seq in ranked:
                yield rank, seq, seq
            if len(ranked) < chunk:
                return
            ranked = _ranked.decode(tx.value(further, (*bindings, *ranked[-1], chunk)))

    def lease(
        self, tx: Transaction, claim: Claim, seqs: list[Seq], lease_ms: int, start: bool
    ) -> Mapping[Seq, Lease]:
        """Lease those of the jobs that are still queued, and release the keys that end with it."""
        row = {
            "seqs": tx.listed(seqs),
            "owner": claim.owner,
            "until": tx.monotonic + lease_ms,
            "now": tx.now,
            "start": start,
        }
        tx.run("claim", row)
        granted = _granted(tx, row)
        keyed = [lease.id for lease in granted if lease.key_scope == KeyScope.WHILE_PENDING]
        if keyed:
            tx.run("release_keys_at_claim", (tx.listed(keyed),))
        return {lease.seq: lease for lease in granted}


def _granted(tx: Transaction, row: dict[str, Any]) -> list[_Granted]:
    try:
        return _leases.decode(tx.value("granted", row))
    except ValueError:  # a payload edited by hand is no text; it must not cost the others
        return [_readable(list(fields)) for fields in tx.rows("granted_one_by_one", row)]


def _readable(fields: list[Any]) -> _Granted:
    fields[5] = readable(fields[5])
    return _Granted(*fields)


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


class SqliteStore(RelationalStore[SqliteDatabase]):
    """One installation of penstock in one SQLite file."""

    def __init__(self, url: str, path: Path | None, clock: Clock | None = None) -> None:
        database = SqliteDatabase(path, clock or SystemClock())
        super().__init__(url, database, database)
        self.jobs = SqliteJobs(database)
        self.tables = SqliteTables(database)
        self.transfer = SqliteTransfer(database)

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
