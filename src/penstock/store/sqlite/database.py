"""The open file: one writer, a few readers, and a watch for other processes' commits."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from penstock.model.clock import Clock
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreClosed, TransactionHeld, TransactionsMet
from penstock.store.relational.signals import Listener, Signal
from penstock.store.sqlite.connect import BusyWait, Readers, SqliteTransaction, connect
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.files import closed, is_inherited, opened, refuse_inherited, refuse_lost
from penstock.store.sqlite.migrate import latest, look_first, migrate
from penstock.store.sqlite.refusals import check_path
from penstock.store.sqlite.wal_watch import WalWatch
from penstock.store.sqlite.writer import Writer

T = TypeVar("T")

Lent = tuple[str, "weakref.ref[apsw.Connection]"]

_lent: ContextVar[tuple[Lent, ...]] = ContextVar("_lent", default=())
_lent_in: dict[int, list[Lent]] = {}
"""All that are lent, by the thread that asked for them."""


class SqliteDatabase:
    """The open file: what every part below reads and writes through."""

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self.path = path
        self.name = str(path) if path else ":memory:"
        self.clock = clock
        self.signal = Signal()
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._watch: WalWatch | None = None

    def open(self) -> tuple[int, int]:
        """Connect, check, migrate; the schema versions before and after."""
        if self._writer is not None:
            self._writer.check()
            return latest(), latest()
        if self.path is not None:
            refuse_inherited(self.path)
            check_path(self.path)
        with translated(self.name):
            if self.path is not None:
                look_first(self.path)
            connection = connect(self.path)
            try:
                versions = migrate(connection, self.name, self.clock)
            except BaseException:
                connection.close()
                raise
        self._writer = Writer(
            self.name,
            connection,
            self.clock,
            self.signal.ring,
            # What was in memory alone went with its connection.
            reconnect=None if self.path is None else partial(connect, self.path),
        )
        if self.path is not None:
            opened(self.path)
            self._readers = Readers(self.path, self.clock)
            self._watch = WalWatch(self.path, self.signal.ring)
        return versions

    def close(self) -> None:
        """Commit what was submitted and let go of the file."""
        if self.path is not None and is_inherited(self.path):
            return  # even closing would disturb the parent's connections
        watch, readers, writer = self._watch, self._readers, self._writer
        self._watch = self._readers = self._writer = None
        if watch is not None:
            watch.stop()
        if readers is not None:
            readers.close()
        if writer is not None:
            writer.close()
            if self.path is not None:
                closed(self.path)

    @property
    def writer(self) -> Writer:
        """The process's one writer."""
        if self._writer is None:
            raise StoreClosed(self.name)
        return self._writer

    async def write(self, operation: Callable[[SqliteTransaction], T], *, brief: bool = False) -> T:
        """Run an operation in the next transaction; `brief` is one that writes a row or so."""
        if _holds_write_lock(self.name):
            raise TransactionHeld(self.name)
        return await self.writer.run(operation, brief=brief)

    def write_now(self, operation: Callable[[SqliteTransaction], T], *, brief: bool = False) -> T:
        """The same from a thread that has no event loop."""
        if _holds_write_lock(self.name):
            raise TransactionHeld(self.name)
        return self.writer.call(operation, brief=brief)

    async def read(self, question: Callable[[SqliteTransaction], T]) -> T:
        """Ask on a reading connection (in memory there is only one)."""
        if self._readers is None:
            return await self.writer.run(question)
        return await self._readers.run(question)

    def read_now(self, question: Callable[[SqliteTransaction], T]) -> T:
        """Ask from a thread that has no event loop."""
        if self._readers is None:
            return self.writer.call(question)
        return self._readers.call(question)

    def scrub(self) -> list[str]:
        """Move all of the WAL into the file, where deleted rows are overwritten."""
        if self.path is None:
            return []
        with translated(self.name), closing(connect(self.path)) as connection:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (1,)
        left = (
            f"{self.name}-wal is read by somebody and still holds what was erased; erase it again"
        )
        return [left] if busy else []

    def subscribe(self) -> Listener:
        """Listen for changes made by this or any other process."""
        if self.path is not None:
            refuse_inherited(self.path)
        if self._watch is not None:
            # Only for who listens: it wakes up at every commit, those of this process as well.
            self._watch.start()
        return self.signal.subscribe()

    @contextmanager
    def hold(self) -> Generator[SqliteTransaction, None, None]:
        """Hold one moment of the file, in a transaction that only reads."""
        if self.path is None:
            raise InvalidOption("url", self.name, "a file; what is in memory cannot be copied")
        with translated(self.name), closing(connect(self.path, read_only=True)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM penstock_meta").fetchall()
            yield SqliteTransaction(connection, self.clock.now(), self.clock.monotonic())

    def lend(self) -> apsw.Connection:
        """A connection for the caller's own transactions."""
        if self.path is None:
            raise InvalidOption("url", self.name, "a file; one in memory has no second connection")
        with translated(self.name):
            connection = connect(self.path, kind=Lending)
        setattr(connection, "lent_of", self.name)  # noqa: B010 - of a Lending
        # A transaction that reads first and writes later could not get the lock any more.
        connection.transaction_mode = "IMMEDIATE"
        lent = (self.name, weakref.ref(connection))
        _lent.set((*_alive(_lent.get()), lent))
        here = threading.get_ident()
        _lent_in[here] = [*_alive(_lent_in.get(here, ())), lent]
        connection.set_busy_handler(LentWait(self.name))
        return connection


class Lending(apsw.Connection):
    """A connection of a caller, who begins its transactions by `with connection:`.

    It does not wait for a lock that another task of the same event loop holds: while it does, that
    task could not let go of it.
    """

    lent_of = ""

    def __enter__(self) -> apsw.Connection:
        if not _is_writing(self) and _is_deadlock(self.lent_of):
            raise TransactionsMet(self.lent_of)
        return super().__enter__()


class LentWait(BusyWait):
    """Waits for a lock that somebody may let go of."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __call__(self, tries: int) -> bool:
        """Wait a step; whether to try again."""
        return not (tries == 0 and _is_deadlock(self._name)) and super().__call__(tries)


def _is_deadlock(name: str) -> bool:
    """Whether a transaction that this thread would have to go on with holds the lock."""
    return _in_event_loop() and _is_held(name, _lent_in.get(threading.get_ident(), ()))


def _in_event_loop() -> bool:
    return asyncio._get_running_loop() is not None  # pyright: ignore[reportAttributeAccessIssue]


def _alive(lent: Iterable[Lent]) -> list[Lent]:
    return [each for each in lent if each[1]() is not None]


def _is_held(name: str, lent: Iterable[Lent]) -> bool:
    return any(_is_writing(given()) for path, given in lent if path == name)


def exists(path: Path) -> bool:
    """Tell whether there is an installation in a file, which stays as it is."""
    if not path.exists():
        refuse_lost(str(path), os.path.realpath(path))
        return False
    refuse_inherited(path)
    check_path(path)
    with translated(str(path)):
        return look_first(path) > 0


def _holds_write_lock(name: str) -> bool:
    """Whether this very task holds a write transaction, which our writer would wait for."""
    return _is_held(name, _lent.get())


def _is_writing(connection: apsw.Connection | None) -> bool:
    try:
        return connection is not None and connection.txn_state("main") == apsw.SQLITE_TXN_WRITE
    except apsw.ConnectionClosedError:
        return False
