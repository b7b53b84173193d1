"""The one writer of a process: a thread that commits what arrives together in one transaction.

Operations that share a transaction each run in a savepoint of their own, so one that fails takes
nothing else with it, and none is acknowledged before the commit that holds it is on disk.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from penstock.model.clock import Clock
from penstock.model.errors import ForkedStore, StoreClosed, StoreUnavailable
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.transaction import SqliteSavepoint, SqliteTransaction

T = TypeVar("T")
MAX_OPERATIONS = 500


class _Entry:
    """An operation under way, and the future that waits for it."""

    __slots__ = ("error", "future", "loop", "operation", "result")

    def __init__(
        self,
        operation: Callable[[SqliteTransaction], Any],
        future: "asyncio.Future[Any] | Future[Any]",
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.operation = operation
        self.future = future
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Writer:
    """Group commit: `await run(operation)`, or `call(operation)` from a thread."""

    def __init__(
        self,
        path: str,
        connection: apsw.Connection,
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        self._path = path
        self._connection = connection
        self._clock = clock
        self._on_change = on_change
        self._entries: SimpleQueue[_Entry | None] = SimpleQueue()
        self._pid = os.getpid()
        self._identity = _identity(path)
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="penstock-writer", daemon=True)
        self._thread.start()

    async def run(self, operation: Callable[[SqliteTransaction], T]) -> T:
        """Run an operation in the next transaction; returns once it is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._submit(_Entry(operation, future, loop))
        return await future

    def call(self, operation: Callable[[SqliteTransaction], T]) -> T:
        """The same from a thread that has no event loop."""
        future: Future[T] = Future()
        self._submit(_Entry(operation, future, None))
        return future.result()

    def close(self) -> None:
        """Commit what was submitted, then let the connection go."""
        if os.getpid() != self._pid:
            return
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._entries.put(None)
        self._thread.join()

    def check(self) -> None:
        """Refuse a process that was forked from the one that opened the file."""
        if os.getpid() != self._pid:
            raise ForkedStore(self._path)
        if self._closed:
            raise StoreClosed(self._path)

    def _submit(self, entry: _Entry) -> None:
        self.check()  # before the lock, which a forked process may have inherited locked
        with self._closing:
            # Nothing may be put behind the end of the queue, where nobody would answer it.
            if self._closed:
                raise StoreClosed(self._path)
            self._entries.put(entry)

    def _serve(self) -> None:
        open_ = True
        while open_:
            batch: list[_Entry] = []
            entry = self._entries.get()
            while entry is not None:
                batch.append(entry)
                if len(batch) == MAX_OPERATIONS or self._entries.empty():
                    break
                entry = self._entries.get()
            open_ = entry is not None
            if batch:
                changed = self._commit(batch)
                _deliver(batch)
                if changed:
                    self._on_change()
        self._refuse_latecomers()
        self._connection.close()

    def _refuse_latecomers(self) -> None:
        """Answer what was submitted in the very moment of closing."""
        late: list[_Entry] = []
        while not self._entries.empty():
            if (entry := self._entries.get()) is not None:
                entry.error = StoreClosed(self._path)
                late.append(entry)
        _deliver(late)

    def _commit(self, batch: list[_Entry]) -> bool:
        try:
            with translated(self._path):
                self._check_file()
                self._connection.execute("BEGIN IMMEDIATE")
                transaction = SqliteTransaction(
                    self._connection, self._clock.now(), self._clock.monotonic()
                )
                if len(batch) == 1:  # needs no savepoint: its failure undoes the transaction
                    batch[0].result = batch[0].operation(transaction)
                else:
                    for entry in batch:
                        self._attempt(entry, transaction)
                self._connection.execute("COMMIT")
                return transaction.changed
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for entry in batch:
                entry.error = entry.error or error
            return False

    def _check_file(self) -> None:
        """A file that was deleted or moved would take commits that nobody can ever read."""
        if self._identity is not None and _identity(self._path) != self._identity:
            raise StoreUnavailable(self._path, "its file was moved or deleted while it was open")

    def _attempt(self, entry: _Entry, transaction: SqliteTransaction) -> None:
        try:
            with translated(self._path), SqliteSavepoint(self._connection):
                entry.result = entry.operation(transaction)
        except BaseException as error:
            entry.error = error
            if not self._connection.in_transaction:
                raise


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _deliver(batch: list[_Entry]) -> None:
    """Wake every waiting event loop once, however many operations of its were committed."""
    loops: dict[asyncio.AbstractEventLoop, list[_Entry]] = {}
    for entry in batch:
        if entry.loop is None:
            entry.resolve()
        else:
            loops.setdefault(entry.loop, []).append(entry)
    for loop, entries in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, entries)
        except RuntimeError:  # the loop was closed; nobody waits any more
            continue


def _resolve(entries: list[_Entry]) -> None:
    for entry in entries:
        entry.resolve()
