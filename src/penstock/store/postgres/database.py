"""The open database: a writer for the hot path, and connections beside it."""

import asyncio
import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import psycopg

from penstock.model.clock import Clock, ServerClock
from penstock.model.store_errors import ForkedStore, StoreClosed, StoreUnavailable
from penstock.store.postgres.connect import (
    LOCK_MS,
    PATIENCE_SECONDS,
    Address,
    Connection,
    connect,
    is_direct,
    quoted,
)
from penstock.store.postgres.errors import translated
from penstock.store.postgres.migrate import migrate, migrate_by
from penstock.store.postgres.queries import queries
from penstock.store.postgres.round_trip import RoundTrip, Sent
from penstock.store.postgres.session import Kind, Session
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres.wake_ups import WakeUps
from penstock.store.relational.group_commit import Entry, GroupCommit, deliver
from penstock.store.relational.signals import Listener, Signal

MOST_REWRITTEN = 64 << 20
"""A table larger than this is not written anew, because that keeps everybody out of it."""


class Writer(GroupCommit[PostgresTransaction]):
    """Group commit on one session."""

    commits_in_place = True

    def __init__(self, name: str, session: Session, announce: Callable[[Session], None]) -> None:
        self._session = session
        self._announce = partial(announce, session)
        super().__init__(name, self._announce)

    def commit(self, batch: list[Entry[PostgresTransaction]]) -> bool:
        """Run the operations in one transaction, or one by one; whether something changed."""
        if len(batch) == 1:
            return self._alone(batch[0])
        try:
            answers, changed = self._session.perform(
                lambda tx: [e.operation(tx) for e in batch], kind=Kind.GIVING_WAY
            )
        except StoreUnavailable as error:
            for entry in batch:
                entry.error = error
            return False
        except BaseException:
            changes = [self._alone(entry) for entry in batch]
            return any(changes)
        for entry, answer in zip(batch, answers, strict=True):
            entry.result = answer
        return changed

    def begin(self, entry: Entry[PostgresTransaction]) -> bool:
        """Send a trip whose answer the event loop of its caller waits for."""
        trip, loop = entry.operation, entry.loop
        if not isinstance(trip, RoundTrip) or loop is None or self.is_busy:
            return False
        return self._session.begin(trip, loop, partial(self._ended, entry))

    def let_go(self) -> None:
        """Leave the connection to its owner, who may have something to tell by it."""
        self._session.finish()

    def _ended(self, entry: Entry[PostgresTransaction], sent: Sent[Any], in_loop: bool) -> None:
        entry.result, entry.error = sent.result, sent.error
        if entry.result is None and entry.error is None:
            self.submit(entry)
            return
        if entry.error is None and sent.trip.changes:
            # Somebody idle may wait for it: told before the caller, who is not.
            self._announce()
        if in_loop:
            entry.resolve()
        else:
            deliver([entry])

    def _alone(self, entry: Entry[PostgresTransaction]) -> bool:
        try:
            entry.result, changed = self._session.perform(entry.operation)
        except BaseException as error:
            entry.error = error
            return False
        if changed and isinstance(entry.operation, RoundTrip):
            # Somebody idle may wait for it: told before the caller, who is not.
            self._announce()
            return False
        return changed


T = TypeVar("T")
Operation = Callable[[PostgresTransaction], T]
MakeWakeUps = Callable[[Address, Callable[[], None], Session], WakeUps]


class PostgresDatabase:
    """What every part reads and writes through.

    `write` shares one connection and its commits; `beside` is for what may take a while or waits
    for locks, and must not hold up a worker's cycle.
    """

    def __init__(self, address: Address, clock: Clock) -> None:
        self.address = address
        self.name = address.name
        self.clock = clock
        self.signal = Signal()
        self.beside = Beside(self)
        self.make_wake_ups: MakeWakeUps = WakeUps
        self._pid = os.getpid()
        self._open: _Open | None = None

    def open(self) -> tuple[int, int]:
        """Connect, check, migrate; the schema versions before and after."""
        if self._open is not None:
            return migrate(self.address)
        # Kept for the first session: to connect is most of what opening costs.
        connection = connect(self.address, patience=PATIENCE_SECONDS)
        try:
            versions = migrate_by(connection, self.address)
            self._open = _Open(
                self.address, self.clock, self.signal, self.make_wake_ups, connection
            )
        except BaseException:
            connection.close()
            raise
        self._pid = os.getpid()
        return versions

    def close(self) -> None:
        """Commit what was submitted and let go of the connections."""
        parts, self._open = self._open, None
        if parts is not None and os.getpid() == self._pid:
            parts.close()

    @property
    def parts(self) -> "_Open":
        """What is open."""
        if os.getpid() != self._pid:
            raise ForkedStore(self.name)
        if self._open is None:
            raise StoreClosed(self.name)
        return self._open

    async def write(self, operation: Operation[T], *, brief: bool = False) -> T:
        """Run an operation in the next transaction; `brief` is one that sends a row or so."""
        return await self.parts.writer.run(operation, brief=brief)

    async def write_apart(self, operation: Operation[T], *, brief: bool = False) -> T:
        """The same on a connection of its own, so that the server works on both at once."""
        return await self.parts.second_writer().run(operation, brief=brief)

    def write_now(self, operation: Operation[T]) -> T:
        """Run an operation at once, on a connection that no cycle of a worker holds up."""
        parts = self.parts
        return parts.perform(parts.side, operation)

    async def read(self, question: Operation[T]) -> T:
        """Ask, seeing one state of the database throughout."""
        parts = self.parts
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(parts.pool, parts.ask, question)

    def read_now(self, question: Operation[T]) -> T:
        """Ask from a thread that has no event loop."""
        return self.parts.side.perform(question)[0]

    @contextmanager
    def hold(self) -> Generator[PostgresTransaction, None, None]:
        """Hold one moment of the database, in a transaction that only reads."""
        with translated(self.name), closing(connect(self.address)) as connection:
            cursor = connection.execute(self.address.begin(read_only=True))
            while cursor.nextset():
                pass
            now = int(cast("tuple[Any, ...]", cursor.fetchone())[0])
            told = isinstance(self.clock, ServerClock)
            monotonic = now if told else self.clock.monotonic()
            yield PostgresTransaction(connection, now if told else self.clock.now(), monotonic)

    def scrub(self) -> list[str]:
        """Write tables anew without what was deleted, as a plain VACUUM does not overwrite it."""
        with translated(self.name), closing(connect(self.address)) as connection:
            sizes = connection.execute(
                queries()["tables_to_scrub"], {"schema": self.address.schema}
            )
            tables = sizes.fetchall()
            if not all(mine for _, mine, _ in tables) or not is_direct(connection):
                return [f"VACUUM (FULL) the tables of schema {self.address.schema} as their owner"]
            connection.execute(f"SET lock_timeout = {LOCK_MS}".encode())
            left = [
                name
                for name, _, size in tables
                if not self._scrubbed(connection, name, whole=size <= MOST_REWRITTEN)
            ]
            return [f"VACUUM (FULL) {name} when nobody uses it" for name in left]

    def _scrubbed(self, connection: Connection, table: str, *, whole: bool) -> bool:
        """Write a small table anew; a large one is cleaned while it is used."""
        name = f"{quoted(self.address.schema)}.{quoted(table)}"
        try:
            connection.execute(f"VACUUM {'(FULL) ' if whole else ''}{name}".encode())
        except psycopg.errors.LockNotAvailable:
            return False
        return whole

    def subscribe(self) -> Listener:
        """Listen for changes made by this or any other process."""
        self.parts.wake_ups.listen()
        return self.signal.subscribe()


class Beside:
    """The same database, for operations that take their time."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._db = database
        self.name = database.name
        self.clock = database.clock
        self.read = database.read
        self.read_now = database.read_now
        self.write_now = database.write_now
        self.subscribe = database.subscribe

    async def write(self, operation: Operation[T]) -> T:
        """Run an operation in a transaction of its own."""
        parts = self._db.parts
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(parts.pool, parts.act, operation)


class _Open:
    """The connections of an open database; most are made when they are first needed."""

    THREADS = 2
    LOOK_SECONDS = 1.0

    def __init__(
        self,
        address: Address,
        clock: Clock,
        signal: Signal,
        make_wake_ups: MakeWakeUps,
        connection: Connection,
    ) -> None:
        self._address = address
        self._clock = clock
        self._signal = signal
        self._local = threading.local()
        self._sessions: list[Session] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.pool = ThreadPoolExecutor(self.THREADS, thread_name_prefix="penstock-postgres")
        self.side = self._session()
        self._first = self._session()
        self._first.use(connection)
        self.wake_ups = make_wake_ups(address, signal.ring, self._first)
        self.writer = self._writer(self._first)
        self._second_writer: Writer | None = None
        self._watchdog = threading.Thread(target=self._watch, name="penstock-watch", daemon=True)
        self._watchdog.start()

    def ask(self, question: Operation[T]) -> T:
        """Answer a question in a thread of the pool."""
        return self._own().ask(question)

    def act(self, operation: Operation[T]) -> T:
        """Run an operation in a thread of the pool."""
        return self.perform(self._own(), operation)

    def perform(self, session: Session, operation: Operation[T]) -> T:
        """Run an operation on a connection, and tell everybody if it changed something."""
        answer, changed = session.perform(operation)
        if changed:
            self.announce(session)
        return answer

    def announce(self, session: Session) -> None:
        """Tell everybody, by way of a connection that has just committed."""
        self.wake_ups.tell(session)
        self._signal.ring()

    def second_writer(self) -> Writer:
        """A writer beside the first, made when it is first needed."""
        with self._lock:
            if self._second_writer is None:
                self._second_writer = self._writer(self._session())
            return self._second_writer

    def close(self) -> None:
        """Finish and let go."""
        self.writer.close()
        if self._second_writer is not None:
            self._second_writer.close()
        self.pool.shutdown(wait=True)
        self._closing.set()
        self._watchdog.join()
        self.wake_ups.stop()
        for session in self._sessions:
            session.close()

    def _own(self) -> Session:
        """The connection of a thread of the pool; a process that only enqueues has one in all."""
        if not self.wake_ups.listening:
            return self._first
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._session()
        return session

    def _writer(self, session: Session) -> Writer:
        return Writer(self._address.name, session, self.announce)

    def _session(self) -> Session:
        session = Session(self._address, self._clock)
        self._sessions.append(session)
        return session

    def _watch(self) -> None:
        """Break connections that stopped answering, so that nobody waits for them for ever."""
        while not self._closing.wait(self.LOOK_SECONDS):
            for session in list(self._sessions):
                session.cut_if_silent()
