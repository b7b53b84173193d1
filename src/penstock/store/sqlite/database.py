"""The open file: one writer, a few readers, and a watch for other processes' commits."""

import os
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from penstock.model.clock import Clock
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreClosed, TransactionHeld
from penstock.store.relational.signals import Listener, Signal
from penstock.store.sqlite.connect import Readers, SqliteTransaction, connect
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.files import closed, is_inherited, opened, refuse_inherited, refuse_lost
from penstock.store.sqlite.lent import holds_write_lock, lend
from penstock.store.sqlite.migrate import latest, look_first, migrate
from penstock.store.sqlite.refusals import check_path
from penstock.store.sqlite.wal_watch import WalWatch
from penstock.store.sqlite.writer import Writer

T = TypeVar("T")


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
        if holds_write_lock(self.name):
            raise TransactionHeld(self.name)
        return await self.writer.run(operation, brief=brief)

    def write_now(self, operation: Callable[[SqliteTransaction], T], *, brief: bool = False) -> T:
        """The same from a thread that has no event loop."""
        if holds_write_lock(self.name):
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
            return lend(self.path, self.name)


def exists(path: Path) -> bool:
    """Tell whether there is an installation in a file, which stays as it is."""
    if not path.exists():
        refuse_lost(str(path), os.path.realpath(path))
        return False
    refuse_inherited(path)
    check_path(path)
    with translated(str(path)):
        return look_first(path) > 0
