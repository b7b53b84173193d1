"""The SQLite store: one file, one writer, many readers."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

import apsw
from msgspec.json import encode

from penstock.model.clock import Clock, SystemClock
from penstock.model.job import Enqueued, Job, NewJob
from penstock.model.settlement import Settlement
from penstock.store.contract import (
    Beat,
    Claim,
    Claimed,
    DeadLetter,
    Durability,
    Execution,
    Held,
    JobFilter,
    LogLine,
    Pruned,
    QueueDepth,
    Renewal,
    Report,
    Rescued,
    Resolution,
    Retention,
    Window,
    WorkerInfo,
)
from penstock.store.sqlite import (
    dead,
    leases,
    lookup,
    metrics,
    operate,
    rescue,
    settle,
    workers,
)
from penstock.store.sqlite.backup import backup
from penstock.store.sqlite.claim import Claims, stage
from penstock.store.sqlite.counters import FINE_MS
from penstock.store.sqlite.database import Database
from penstock.store.sqlite.enqueue import enqueue
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.expire import expire
from penstock.store.sqlite.inspect import inspect
from penstock.store.sqlite.prune import prune
from penstock.store.sqlite.refusals import refuse_foreign_connection
from penstock.store.sqlite.signals import Listener
from penstock.store.sqlite.transaction import Savepoint, Transaction

WATCH_SECONDS = 1.0
WATCH_PAUSE_SECONDS = 0.05


class SqliteJobs:
    """`JobStore` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._claims = Claims()

    async def enqueue(
        self, jobs: Sequence[NewJob], *, connection: object | None = None
    ) -> list[Enqueued]:
        """Insert jobs, in the caller's transaction when a connection is given."""
        if not jobs:
            return []
        if connection is None:
            return await self._db.write(lambda tx: enqueue(tx, jobs))
        joined = refuse_foreign_connection(connection, self._db.name)
        with translated(self._db.name), Savepoint(joined):
            tx = Transaction(joined, self._db.clock.now(), self._db.clock.monotonic())
            return enqueue(tx, jobs)

    async def claim(self, claim: Claim) -> Claimed:
        """Lease the most urgent jobs."""
        return await self._db.write(lambda tx: self._claims.claim(tx, claim))

    async def start(self, owner: str, leases: Sequence[tuple[str, int]]) -> None:
        """Mark prefetched leases as started."""

        def mark(tx: Transaction) -> None:
            started = encode(list(leases)).decode()
            tx.run("start", {"started": started, "owner": owner, "now": tx.now})

        await self._db.write(mark)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[str]:
        """End leases."""
        return await self._db.write(lambda tx: settle.settle(tx, owner, settlements))

    async def report(self, owner: str, reports: Sequence[Report]) -> list[str]:
        """Write progress, checkpoints and logs."""
        return await self._db.write(lambda tx: settle.report(tx, owner, reports))

    async def cancel(self, ids: Sequence[str], reason: str) -> dict[str, str]:
        """Cancel waiting jobs, ask running ones to stop."""
        return await self._db.write(lambda tx: operate.cancel(tx, ids, reason))

    async def requeue(self, ids: Sequence[str]) -> list[str]:
        """Give ended jobs a fresh budget."""
        return await self._db.write(lambda tx: operate.requeue(tx, ids))


class SqliteLeases:
    """`Leases` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def renew(
        self,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds, and what it was granted without knowing it yet."""
        return self._db.writer.call(lambda tx: leases.renew(tx, owner, held, unheard_ms, given_up))

    def cancel_requests(self, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        return self._db.read_now(lambda tx: leases.cancel_requests(tx, owner))


class SqliteReader:
    """`JobReader` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        return await self._db.read(lambda tx: lookup.get(tx, ids))

    async def find(self, where: JobFilter) -> list[Job]:
        """A page of jobs, newest first."""
        return await self._db.read(lambda tx: lookup.find(tx, where))

    async def executions(self, job_id: str) -> list[Execution]:
        """A job's executions, oldest first."""
        return await self._db.read(lambda tx: lookup.executions(tx, job_id))

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The lines its handler kept."""
        return await self._db.read(lambda tx: lookup.logs(tx, job_id, limit))

    async def watch(self, ids: Sequence[str]) -> AsyncIterator[Job]:
        """Each job now and whenever it changes, until all are terminal."""
        listener = self._db.subscribe()
        seen: dict[str, Job] = {}
        waiting = list(dict.fromkeys(ids))
        # Commits of other jobs ring too: a long wait looks less and less often.
        pause = 0.001
        try:
            while waiting:
                found = await self.get(waiting)
                for job in found:
                    if seen.get(job.id) != job:
                        seen[job.id] = job
                        yield job
                waiting = [job.id for job in found if not job.status.terminal]
                if waiting:
                    await asyncio.sleep(pause)
                    await listener.wait(WATCH_SECONDS)
                    pause = min(pause * 2, WATCH_PAUSE_SECONDS)
        finally:
            listener.close()


class SqliteDeadLetters:
    """`DeadLetters` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        resolution: Resolution | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page, newest first."""
        return await self._db.read(lambda tx: dead.find(tx, type, resolution, before, limit))

    async def get(self, job_id: str) -> DeadLetter | None:
        """One dead letter, or none."""
        return await self._db.read(lambda tx: dead.get(tx, job_id))

    async def resolve(
        self, ids: Sequence[str], resolution: Resolution, *, notes: str | None, by: str | None
    ) -> list[str]:
        """Record where a person stands with them."""
        return await self._db.write(lambda tx: dead.resolve(tx, ids, resolution, notes, by))

    async def purge(self, ids: Sequence[str]) -> int:
        """Delete dead letters and their jobs for good."""
        return await self._db.write(lambda tx: dead.purge(tx, ids))


class SqliteWorkers:
    """`Workers` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def beat(self, beat: Beat) -> None:
        """Write or refresh a worker's row."""
        self._db.writer.call(lambda tx: workers.beat(tx, beat))

    async def forget(self, owner: str) -> None:
        """Remove a worker that stopped."""
        await self._db.write(lambda tx: workers.forget(tx, owner))

    async def list(self) -> list[WorkerInfo]:
        """All known workers, the freshest first."""
        return await self._db.read(workers.known)

    async def waiting_types(self) -> dict[str, int]:
        """Types with queued jobs, and how many."""
        return await self._db.read(workers.waiting_types)


class SqliteMetrics:
    """`Metrics` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def depths(self) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs."""
        return await self._db.read(metrics.depths)

    async def dead_count(self) -> int:
        """Dead letters nobody has resolved."""
        return await self._db.read(lambda tx: int(tx.value("dead_count")))

    async def window(self, span_ms: int) -> list[Window]:
        """Figures over the last span; long ones read coarse steps, which must be up to date."""
        if span_ms > metrics.HOUR_MS:
            await self.roll_up()
        return await self._db.read(lambda tx: metrics.window(tx, span_ms))

    async def series(self, resolution_ms: int, span_ms: int) -> list[tuple[int, dict[str, float]]]:
        """Counters per step, oldest first."""
        if resolution_ms > FINE_MS:
            await self.roll_up()
        return await self._db.read(lambda tx: metrics.series(tx, resolution_ms, span_ms))

    async def roll_up(self) -> int:
        """Fold, sample, drop; the sampling reads, so that the writer does not wait for it."""
        sampled = await self.depths()
        return await self._db.write(lambda tx: metrics.roll_up(tx, sampled))


class SqliteUpkeep:
    """`Upkeep` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def lead(self, role: str, owner: str, term_ms: int) -> bool:
        """Take or keep the leadership for a term."""

        def take(tx: Transaction) -> bool:
            row = {"role": role, "owner": owner, "monotonic": tx.monotonic}
            return tx.many("lead", (row | {"until": tx.monotonic + term_ms},)) == 1

        return await self._db.write(take)

    async def resign(self, role: str, owner: str) -> None:
        """Give the leadership up at once."""
        await self._db.write(lambda tx: tx.run("resign", (role, owner)))

    async def stage(self, limit: int = 1000) -> int:
        """Queue waiting jobs that fell due."""
        return await self._db.write(lambda tx: stage(tx, limit))

    async def expire(self, limit: int = 1000) -> list[str]:
        """Dead-letter waiting jobs past their expiry."""
        return await self._db.write(lambda tx: expire(tx, limit))

    async def rescue(
        self, *, owner: str | None = None, max_rescues: int = 3, limit: int = 1000
    ) -> list[Rescued]:
        """Take away leases that ran out, or all leases of a dead owner."""
        return await self._db.write(lambda tx: rescue.rescue(tx, owner, max_rescues, limit))

    async def prune(self, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention."""
        return await self._db.write(lambda tx: prune(tx, retention, limit))


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
