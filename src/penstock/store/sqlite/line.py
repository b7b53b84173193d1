"""The line in front of a file's write lock: SQLite keeps none, and whoever asks most often wins.

Whoever has to wait for the lock, or finds others waiting, takes the front of the line, a lock on a
byte of the `-wal` file that the kernel hands on in the order of asking, and leaves it as soon as
SQLite's own lock is his. The second in line holds another byte meanwhile: a process that comes back
at once finds one of them taken and cannot slip in before one that is still waking up.

Only courtesy hangs on it, never correctness: a process that is killed leaves the line by itself,
and nobody stands behind one that does not move for more than a few seconds. SQLite locks nothing in
the `-wal` file, so closing a descriptor of it takes no lock away.
"""

import ctypes
import fcntl
import os
import threading
import time
from contextlib import suppress

WAIT_SECONDS = 5.0
IGNORED_SECONDS = 10.0

_UNLOCK, _TRY_LOCK, _TEST = 0, 2, 3
_FRONT, _SECOND, _PLACES = 0, 1, 2


class Line:
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
