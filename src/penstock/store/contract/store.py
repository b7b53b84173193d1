"""A store: its parts, its own life, and watching jobs by wake-ups."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from penstock.model.clock import Clock
from penstock.model.job import Job
from penstock.store.contract.changes import Changes
from penstock.store.contract.controls import Controls
from penstock.store.contract.dead import DeadLetters
from penstock.store.contract.jobs import Inbox, JobStore, Leases
from penstock.store.contract.metrics import Metrics
from penstock.store.contract.reader import JobReader
from penstock.store.contract.records import AuditLog, Records
from penstock.store.contract.schedules import Schedules
from penstock.store.contract.tables import TableStore
from penstock.store.contract.transfer import Snapshot, Transfer
from penstock.store.contract.upkeep import Upkeep, Workers


class Durability(Struct, frozen=True):
    """What survives, in a sentence, and the checks behind it: (name, passed, detail)."""

    promise: str
    checks: list[tuple[str, bool, str]]


class Subscription(Protocol):
    """Hears of changes made by this or any other process."""

    async def wait(self, timeout: float) -> bool:
        """True when something changed, false when the time ran out."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Store(Protocol):
    """One installation of penstock."""

    @property
    def url(self) -> str:
        """The URL it was opened with."""
        ...

    @property
    def clock(self) -> Clock:
        """The one clock all its times come from."""
        ...

    @property
    def jobs(self) -> JobStore:
        """The life of jobs."""
        ...

    @property
    def leases(self) -> Leases:
        """Keeping leases alive."""
        ...

    @property
    def reader(self) -> JobReader:
        """Questions about jobs."""
        ...

    @property
    def dead(self) -> DeadLetters:
        """Dead letters."""
        ...

    @property
    def controls(self) -> Controls:
        """Pauses, limits and breakers."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Schedules."""
        ...

    @property
    def workers(self) -> Workers:
        """The register of workers."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Roll-ups."""
        ...

    @property
    def records(self) -> Records:
        """Small documents of the server."""
        ...

    @property
    def audit(self) -> AuditLog:
        """Who did what."""
        ...

    @property
    def upkeep(self) -> Upkeep:
        """The leader's passes."""
        ...

    @property
    def changes(self) -> Changes:
        """Followers, and the changes of jobs that wait for them."""
        ...

    @property
    def transfer(self) -> Transfer:
        """Moving the whole of it elsewhere."""
        ...

    @property
    def tables(self) -> TableStore | None:
        """The tables of extensions; none where there are no tables."""
        ...

    @property
    def inbox(self) -> Inbox | None:
        """Where an outbox delivers jobs; none in a store with tables, which needs no outbox."""
        ...

    async def exists(self) -> bool:
        """Whether there is an installation at its URL; opening makes one."""
        ...

    async def open(self, *, moving: bool = False) -> None:
        """Connect, check the promises, migrate; during or after a move only for `moving` it."""
        ...

    async def close(self) -> None:
        """Finish what is written and let go."""
        ...

    def subscribe(self) -> Subscription:
        """Listen for changes."""
        ...

    async def scrub(self) -> list[str]:
        """Have the bytes of what was deleted leave the disk; what is left to do, in sentences."""
        ...

    async def migrate(self) -> tuple[int, int]:
        """Bring the schema up to date; the versions before and after."""
        ...

    async def inspect(self) -> Durability:
        """Check every promise this store makes."""
        ...

    async def dispatch_answers(self) -> bool | None:
        """Whether the server that finds work beside the store answers; none if there is none."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Hold one moment of the whole installation, to be copied while everything goes on."""
        ...

    def connection(self) -> object:
        """A connection whose transaction an enqueue can join."""
        ...


WATCH_SECONDS = 1.0
WATCH_PAUSE_SECONDS = 0.05

Get = Callable[[Sequence[str]], Awaitable[list[Job]]]


async def watch(
    get: Get, subscribe: Callable[[], Subscription], ids: Sequence[str]
) -> AsyncGenerator[Job, None]:
    """Each job now and whenever it changes, until all of them are terminal."""
    listener = subscribe()
    seen: dict[str, Job] = {}
    waiting = list(dict.fromkeys(ids))
    # Changes of other jobs ring too: a long wait looks less and less often.
    pause = 0.001
    try:
        while waiting:
            found = await get(waiting)
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
