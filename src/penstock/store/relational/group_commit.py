"""A thread that commits what arrives together in one transaction.

None of the operations that share one is acknowledged before the commit that holds it.
"""

import asyncio
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from penstock.model.store_errors import ForkedStore, StoreClosed, StoreError
from penstock.store.relational.transaction import Transaction

T = TypeVar("T")
Tx = TypeVar("Tx", bound=Transaction)
MAX_OPERATIONS = 500
TURN_SECONDS = 0.001
"""For so long a task that writes alone may go on before the event loop has its turn."""


class Entry(Generic[Tx]):
    """An operation under way, and the future that waits for it."""

    __slots__ = ("alone", "brief", "error", "future", "loop", "operation", "result")

    def __init__(
        self,
        operation: Callable[[Tx], Any],
        future: "asyncio.Future[Any] | Future[Any] | None",
        loop: asyncio.AbstractEventLoop | None,
        *,
        brief: bool = False,
    ) -> None:
        self.brief = brief
        self.alone = False
        self.operation = operation
        self.future = future
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        """Tell who waits."""
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)

    def answer(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


class GroupCommit(ABC, Generic[Tx]):
    """`await run(operation)`, or `call(operation)` from a thread.

    While nobody else writes, handing a lone operation to another thread and back would cost more
    than the operation itself: where `commits_in_place`, the thread of its caller commits it.
    """

    commits_in_place = False

    def __init__(self, name: str, on_change: Callable[[], None]) -> None:
        self._name = name
        self._on_change = on_change
        self._entries: SimpleQueue[Entry[Tx] | None] = SimpleQueue()
        self._pid = os.getpid()
        self._closed = False
        self._closing = threading.Lock()
        self._turn = threading.Lock()
        self._committer: int | None = None
        self._brief: dict[asyncio.AbstractEventLoop, list[Entry[Tx]]] = {}
        self._lone = (0, 0.0)
        self._thread = threading.Thread(target=self._serve, name="penstock-writer", daemon=True)
        self._thread.start()

    @abstractmethod
    def commit(self, batch: list[Entry[Tx]]) -> bool:
        """Run the operations and fill in each one's result or error; whether something changed."""

    @abstractmethod
    def let_go(self) -> None:
        """Close the connection."""

    def commit_at_once(self, entry: Entry[Tx]) -> bool | None:
        """Commit one brief operation without waiting for anybody; None if that cannot be."""
        return None

    def begin(self, entry: Entry[Tx]) -> bool:
        """Begin one brief operation that resolves itself later; whether it did."""
        return False

    def may_commit_in_place(self) -> bool:
        """Tell whether nothing is left to do that would hold up the thread of a caller."""
        return True

    def tidy(self) -> None:
        """Do what can wait until everybody has been answered."""

    async def run(self, operation: Callable[[Tx], T], *, brief: bool = False) -> T:
        """Run an operation in the next transaction; returns once it is committed.

        One that is `brief`, a row or so, may be committed by the event loop itself.
        """
        loop = asyncio.get_running_loop()
        entry = Entry(operation, None, loop, brief=brief)
        if brief and self.commits_in_place:
            result: T = await self._run_brief(loop, entry)
            return result
        future: asyncio.Future[T] = loop.create_future()
        entry.future = future
        self._submit(entry)
        return await future

    def call(self, operation: Callable[[Tx], T], *, brief: bool = False) -> T:
        """The same from a thread that has no event loop."""
        if self._committer == threading.get_ident():
            raise StoreError(
                self._name,
                "is written by this very unit of work, so another write would wait for ever; "
                "use tx.enqueue(…) and the queries of tx",
            )
        entry = Entry(operation, None, None, brief=brief)
        if self._commit_in_place(entry, self.commit_alone):
            result: T = entry.answer()
            return result
        future: Future[T] = Future()
        entry.future = future
        self._submit(entry)
        return future.result()

    def commit_alone(self, entry: Entry[Tx]) -> bool | None:
        """Commit one operation, waiting for others as long as it takes."""
        return self.commit([entry])

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

    async def _run_brief(self, loop: asyncio.AbstractEventLoop, entry: Entry[Tx]) -> Any:
        """Commit in the next turn of the loop, or in this one for a task that writes alone."""
        self.check()
        task = id(asyncio.current_task())
        lone_task, until = self._lone
        if (
            task == lone_task
            and loop not in self._brief
            and time.monotonic() < until
            and self._commit_in_place(entry, self.commit_at_once)
        ):
            return entry.answer()
        entry.future = loop.create_future()
        self._gather(loop, entry)
        result = await entry.future
        if entry.alone:
            self._lone = task, time.monotonic() + TURN_SECONDS
        return result

    def _gather(self, loop: asyncio.AbstractEventLoop, entry: Entry[Tx]) -> None:
        """Let other tasks of the loop that are about to write come along."""
        waiting = self._brief.get(loop)
        if waiting is None:
            self._brief[loop] = [entry]
            loop.call_soon(self._commit_gathered, loop)
        else:
            waiting.append(entry)

    def _commit_gathered(self, loop: asyncio.AbstractEventLoop) -> None:
        entries = self._brief.pop(loop)
        if len(entries) == 1:
            if self.begin(entries[0]):
                return
            if self._commit_in_place(entries[0], self.commit_at_once):
                entries[0].alone = True
                return
        for entry in entries:
            self.submit(entry)

    @property
    def is_busy(self) -> bool:
        """Whether others wait to be committed, or nothing is committed any more."""
        return self._closed or not self._entries.empty()

    def submit(self, entry: Entry[Tx]) -> None:
        """Have an operation committed by the thread; where it cannot be, its caller hears why."""
        try:
            self._submit(entry)
        except BaseException as error:
            entry.error = error
            deliver([entry])

    def _commit_in_place(
        self, entry: Entry[Tx], commit: Callable[[Entry[Tx]], bool | None]
    ) -> bool:
        """Commit an operation in this very thread, if nobody else is at it; whether it was."""
        if not self.commits_in_place or self.is_busy:
            return False
        if os.getpid() != self._pid or not self._turn.acquire(blocking=False):
            return False
        self._committer = threading.get_ident()
        try:
            changed = commit(entry) if self.may_commit_in_place() else None
        except BaseException as error:
            entry.error = entry.error or error
            changed = False
        finally:
            self._committer = None
            self._turn.release()
        if changed is None:
            return False
        entry.resolve()
        if changed:
            self._on_change()
        return True

    def _submit(self, entry: Entry[Tx]) -> None:
        self.check()  # before the lock, which a forked process may have inherited locked
        with self._closing:
            # Nothing may be put behind the end of the queue, where nobody would answer it.
            if self._closed:
                raise StoreClosed(self._name)
            self._entries.put(entry)

    def _serve(self) -> None:
        while (entry := self._entries.get()) is not None:
            with self._turn:  # whoever comes while another commits goes along
                batch, open_ = self._batch(entry)
                changed = self._committed(batch)
            deliver(batch)
            if changed:
                self._on_change()
            with self._turn:
                self.tidy()
            if not open_:
                break
        self._refuse_latecomers()
        with self._turn:
            self.let_go()

    def _batch(self, entry: Entry[Tx]) -> tuple[list[Entry[Tx]], bool]:
        """An operation and those that wait behind it; whether there may be more."""
        batch = [entry]
        while len(batch) < MAX_OPERATIONS and not self._entries.empty():
            following = self._entries.get()
            if following is None:
                return batch, False
            batch.append(following)
        return batch, True

    def _committed(self, batch: list[Entry[Tx]]) -> bool:
        """Commit; whatever happens, everybody is told, and the thread goes on."""
        self._committer = threading.get_ident()
        try:
            return self.commit(batch)
        except BaseException as error:
            for entry in batch:
                entry.error = entry.error or error
            return False
        finally:
            self._committer = None

    def _refuse_latecomers(self) -> None:
        """Answer what was submitted in the very moment of closing."""
        late: list[Entry[Tx]] = []
        while not self._entries.empty():
            if (entry := self._entries.get()) is not None:
                entry.error = StoreClosed(self._name)
                late.append(entry)
        deliver(late)


def deliver(batch: list[Entry[Any]]) -> None:
    """Resolve operations from any thread; an event loop is woken once for all of its own."""
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
