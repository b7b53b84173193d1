"""A thread that commits what arrives together in one transaction.

None of the operations that share one is acknowledged before the commit that holds it.
"""

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from penstock.model.errors import ForkedStore, StoreClosed
from penstock.store.relational.transaction import Transaction

T = TypeVar("T")
Tx = TypeVar("Tx", bound=Transaction)
MAX_OPERATIONS = 500


class Entry(Generic[Tx]):
    """An operation under way, and the future that waits for it."""

    __slots__ = ("error", "future", "loop", "operation", "result")

    def __init__(
        self,
        operation: Callable[[Tx], Any],
        future: "asyncio.Future[Any] | Future[Any]",
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.operation = operation
        self.future = future
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        """Tell who waits."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class GroupCommit(ABC, Generic[Tx]):
    """`await run(operation)`, or `call(operation)` from a thread."""

    def __init__(self, name: str, on_change: Callable[[], None]) -> None:
        self._name = name
        self._on_change = on_change
        self._entries: SimpleQueue[Entry[Tx] | None] = SimpleQueue()
        self._pid = os.getpid()
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="penstock-writer", daemon=True)
        self._thread.start()

    @abstractmethod
    def commit(self, batch: list[Entry[Tx]]) -> bool:
        """Run the operations and fill in each one's result or error; whether something changed."""

    @abstractmethod
    def let_go(self) -> None:
        """Close the connection."""

    async def run(self, operation: Callable[[Tx], T]) -> T:
        """Run an operation in the next transaction; returns once it is committed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._submit(Entry(operation, future, loop))
        return await future

    def call(self, operation: Callable[[Tx], T]) -> T:
        """The same from a thread that has no event loop."""
        future: Future[T] = Future()
        self._submit(Entry(operation, future, None))
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
        """Refuse a process that was forked from the one that opened the store."""
        if os.getpid() != self._pid:
            raise ForkedStore(self._name)
        if self._closed:
            raise StoreClosed(self._name)

    def _submit(self, entry: Entry[Tx]) -> None:
        self.check()  # before the lock, which a forked process may have inherited locked
        with self._closing:
            # Nothing may be put behind the end of the queue, where nobody would answer it.
            if self._closed:
                raise StoreClosed(self._name)
            self._entries.put(entry)

    def _serve(self) -> None:
        open_ = True
        while open_:
            batch: list[Entry[Tx]] = []
            entry = self._entries.get()
            while entry is not None:
                batch.append(entry)
                if len(batch) == MAX_OPERATIONS or self._entries.empty():
                    break
                entry = self._entries.get()
            open_ = entry is not None
            if batch:
                changed = self._committed(batch)
                _deliver(batch)
                if changed:
                    self._on_change()
        self._refuse_latecomers()
        self.let_go()

    def _committed(self, batch: list[Entry[Tx]]) -> bool:
        """Commit; whatever happens, everybody is told, and the thread goes on."""
        try:
            return self.commit(batch)
        except BaseException as error:
            for entry in batch:
                entry.error = entry.error or error
            return False

    def _refuse_latecomers(self) -> None:
        """Answer what was submitted in the very moment of closing."""
        late: list[Entry[Tx]] = []
        while not self._entries.empty():
            if (entry := self._entries.get()) is not None:
                entry.error = StoreClosed(self._name)
                late.append(entry)
        _deliver(late)


def _deliver(batch: list[Entry[Any]]) -> None:
    """Wake every waiting event loop once, however many operations of its were committed."""
    loops: dict[asyncio.AbstractEventLoop, list[Entry[Any]]] = {}
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


def _resolve(entries: list[Entry[Any]]) -> None:
    for entry in entries:
        entry.resolve()
