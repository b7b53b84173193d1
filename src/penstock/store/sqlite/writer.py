"""The one writer of a process, and the line of processes in front of the file's write lock."""

import ctypes
import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import apsw

from penstock.model.clock import Clock
from penstock.model.store_errors import StoreUnavailable
from penstock.store.relational.group_commit import Entry, GroupCommit
from penstock.store.sqlite import connect
from penstock.store.sqlite.connect import SqliteSavepoint, SqliteTransaction
from penstock.store.sqlite.errors import in_our_words, translated
from penstock.store.sqlite.files import OpenFile

WAIT_SECONDS = 5.0
IGNORED_SECONDS = 10.0

_UNLOCK, _TRY_LOCK, _TEST = 0, 2, 3
_FRONT, _SECOND, _PLACES = 0, 1, 2


class WriterQueue:
    """This process's place in the line; one thread at a time may use it."""

    def __init__(self, path: str) -> None:
        self._bytes: tuple[int, int] | None = None
        with suppress(OSError):
            self._bytes = _opened(f"{path}-wal")
        # With the interpreter's lock held: giving that away costs more than the call.
        self._lockf = ctypes.PyDLL(None).lockf
        self._lockf.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong)
        self._waiting: _Waiting | None = None
        self._ignored_until = 0.0

    def is_empty(self) -> bool:
        """Tell whether no other process stands in line, so that nobody has to enter it."""
        return self._bytes is None or self._lockf(self._bytes[0], _TEST, _PLACES) == 0

    def enter(self) -> None:
        """Take the front of the line, or go past one that does not move."""
        if self._bytes is None or time.monotonic() < self._ignored_until or self._try_enter():
            return
        if self._waiting is None or self._waiting.abandoned:
            self._waiting = _Waiting(self._bytes[0])
        if not self._waiting.wait(WAIT_SECONDS):
            self._ignored_until = time.monotonic() + IGNORED_SECONDS

    def leave(self) -> None:
        """Let the next one to the front."""
        if self._bytes is not None:
            self._lockf(self._bytes[0], _UNLOCK, 1)

    def close(self) -> None:
        """Leave for good."""
        if self._waiting is not None:
            self._waiting.end()
        if self._bytes is not None:
            for descriptor in self._bytes:
                os.close(descriptor)
            self._bytes = None

    def _try_enter(self) -> bool:
        """Take the front of the line, unless somebody stands there or is about to."""
        assert self._bytes is not None
        front, second = self._bytes
        if self._lockf(second, _TRY_LOCK, 1) != 0:
            return False
        entered: bool = self._lockf(front, _TRY_LOCK, 1) == 0
        self._lockf(second, _UNLOCK, 1)
        return entered


class _Waiting:
    """A thread that stands in line, since a wait for a lock of the kernel has no time limit."""

    def __init__(self, file: int) -> None:
        self.abandoned = False
        # A descriptor of its own: an abandoned thread may use it long after the line was closed.
        self._file = os.dup(file)
        self._asked = threading.Semaphore(0)
        self._at_front = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._ending = False
        threading.Thread(target=self._serve, name="penstock-line", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Stand in line for so long; whether the front was reached."""
        self._asked.release()
        if self._at_front.acquire(timeout=seconds):
            return True
        with self._lock:
            self.abandoned = not self._at_front.acquire(blocking=False)
        return not self.abandoned

    def end(self) -> None:
        """End the thread, now or when it gets to the front."""
        self._ending = True
        self._asked.release()

    def _serve(self) -> None:
        self._asked.acquire()
        while not self._ending:
            with suppress(OSError):  # a supposed deadlock, or too many locks: no line then
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _SECOND)
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _FRONT)
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _SECOND)
            with self._lock:
                if self.abandoned:
                    break
                self._at_front.release()
            self._asked.acquire()
        os.close(self._file)  # which leaves the line, too


def _opened(path: str) -> tuple[int, int]:
    """Open a file twice: `lockf` locks the byte at which a descriptor stands."""
    front = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        second = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        os.close(front)
        raise
    os.lseek(front, _FRONT, os.SEEK_SET)
    os.lseek(second, _SECOND, os.SEEK_SET)
    return front, second


LONG_SECONDS = 0.002
GAP = 0.1
BRIEF_SECONDS = 0.001
WEIGHT = 0.1


class Writer(GroupCommit[SqliteTransaction]):
    """Group commit on one file.

    Who holds a transaction of his own on `app.connection()` does not stand in the line of writers:
    a worker that always has something to write leaves him a gap after a long transaction.
    """

    commits_in_place = True

    def __init__(
        self,
        path: str,
        connection: apsw.Connection,
        clock: Clock,
        on_change: Callable[[], None],
        *,
        reconnect: Callable[[], apsw.Connection] | None = None,
    ) -> None:
        self._path = path
        self._connection = connection
        self._reconnect = reconnect
        self._broken = False
        self._clock = clock
        self._file = OpenFile(path)
        self._free_until = 0.0
        self._busy_wait = connect.BusyWait()
        self._line = WriterQueue(path)
        self._wal_pages = 0
        self._usual_seconds = 0.0
        self._equip()
        super().__init__(path, on_change)

    def commit(self, batch: list[Entry[SqliteTransaction]]) -> bool:
        """Run the operations in one transaction; whether something changed."""
        return bool(self._commit(batch, wait=True))

    def commit_at_once(self, entry: Entry[SqliteTransaction]) -> bool | None:
        """Commit without waiting for anybody; None if that cannot be, or the disk is slow."""
        slow = self._usual_seconds > BRIEF_SECONDS or self._free_until > time.monotonic()
        return None if slow else self._commit([entry], wait=False)

    def may_commit_in_place(self) -> bool:
        """Whether nothing is left to do that would hold up the thread of a caller."""
        return self._wal_pages < connect.WAL_PAGES and not self._broken

    def tidy(self) -> None:
        """Move what is in the WAL into the file, once there is much of it."""
        if self._wal_pages >= connect.WAL_PAGES:
            with suppress(apsw.Error):  # tried again after the next commit, as SQLite does itself
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._wal_pages = 0

    def let_go(self) -> None:
        """Close the connection."""
        self._line.close()
        self._connection.close()

    def _commit(self, batch: list[Entry[SqliteTransaction]], *, wait: bool) -> bool | None:
        try:
            self._file.check()
            if self._broken:
                self._connect_anew()
            if not self._begin(wait):
                return None
            began = time.monotonic()
            transaction = SqliteTransaction(
                self._connection, self._clock.now(), self._clock.monotonic()
            )
            if len(batch) == 1:  # needs no savepoint: its failure undoes the transaction
                batch[0].result = batch[0].operation(transaction)
            else:
                for entry in batch:
                    self._attempt(entry, transaction)
            self._connection.execute("COMMIT")
            self._note(batch, began, time.monotonic() - began)
            return transaction.changed
        except BaseException as error:
            self._undo()
            ours = in_our_words(self._path, error)
            for entry in batch:
                entry.error = entry.error or ours
            return False

    def _equip(self) -> None:
        self._connection.set_busy_handler(self._busy_wait)
        # A checkpoint is for the writer's own thread, once those who wait have been answered.
        self._connection.set_wal_hook(self._count_pages)

    def _begin(self, wait: bool) -> bool:
        """Get the write lock; false if that would have been a wait and none is wanted."""
        if wait:
            self._leave_gap()
        if self._line.is_empty() and self._got_lock():
            return True
        if not wait:
            return False
        self._line.enter()
        self._busy_wait.waits = True
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._line.leave()
        return True

    def _got_lock(self) -> bool:
        """Get the write lock if nobody has it."""
        self._busy_wait.waits = False
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        return True

    def _note(self, batch: list[Entry[SqliteTransaction]], began: float, held: float) -> None:
        if len(batch) == 1 and batch[0].brief:
            self._free_until = 0.0  # long for its disk alone: its caller comes back late enough
            self._usual_seconds += (held - self._usual_seconds) * WEIGHT
        else:
            self._free_until = began + held * (1 + GAP) if held > LONG_SECONDS else 0.0

    def _count_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _leave_gap(self) -> None:
        missing = self._free_until - time.monotonic()
        if missing > 0:
            time.sleep(missing)

    def _undo(self) -> None:
        """Roll back; a connection that cannot even do that is of no use any more."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            self._broken = True
            # Closing it undoes the transaction, too, and gives the lock back.
            with suppress(apsw.Error):
                self._connection.close(True)

    def _connect_anew(self) -> None:
        if self._reconnect is None:
            advice = "it could not undo a transaction; start this process again"
            raise StoreUnavailable(self._path, advice)
        self._connection = self._reconnect()
        self._equip()
        self._broken = False

    def _attempt(self, entry: Entry[SqliteTransaction], transaction: SqliteTransaction) -> None:
        try:
            with translated(self._path), SqliteSavepoint(self._connection):
                entry.result = entry.operation(transaction)
        except BaseException as error:
            entry.error = error
            if not self._connection.in_transaction:
                raise
