"""The spool: a file of the home that takes what hooks captured while the store cannot.

One sanitised event a line, as JSON, on disk before the hook ends. Whoever flushes it takes the
whole file away first; what was written twice because somebody died in between is there once.

A hook loads this in a process that must be gone within milliseconds: it imports next to nothing.
"""

from __future__ import annotations  # not evaluated: a hook need not load typing

import fcntl
import os

from penstock.apps.recorder.captured import Captured, Message, Redaction, written
from penstock.apps.recorder.home import SPOOL, place
from penstock.apps.recorder.light import loads

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def line_of(captured: Captured) -> bytes:
    """An event as a line of the spool."""
    return f"{written(captured)}\n".encode()


def captured_in(line: bytes) -> Captured | None:
    """The event of a line; None if it was torn."""
    try:
        fields: list[Any] = loads(line)
        captured = Captured(*fields)
        return captured._replace(
            messages=tuple(
                Message(*message[:4], _redactions(message[4])) for message in captured.messages
            ),
            redactions=_redactions(captured.redactions),
        )
    except (ValueError, TypeError, IndexError):
        return None


def _redactions(found: Any) -> tuple[Redaction, ...]:
    return tuple(Redaction(*one) for one in found)


def append(line: bytes, path: str | None = None) -> None:
    """Put a line at the end of the spool, on disk."""
    path = path or place(SPOOL)
    while True:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            opened = os.fstat(file)
            if not _is_at(opened, path):
                continue  # somebody took it away before we had the lock
            # A line that was torn, because its process died or the disk was full, ends here.
            torn = opened.st_size and os.pread(file, 1, opened.st_size - 1) != b"\n"
            whole = b"\n" + line if torn else line
            while whole:
                whole = whole[os.write(file, whole) :]
            fcntl.flock(file, fcntl.LOCK_UN)
            os.fsync(file)
        finally:
            os.close(file)
        return


def _is_at(opened: os.stat_result, path: str) -> bool:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)


class Taken:
    """What was in the spool, for one process at a time: `taken()` gives it, or None.

    It stays on disk until it is `done`.
    """

    def __init__(self, lock: int, file: str) -> None:
        self._lock = lock
        self._file = file
        self.size = os.stat(file).st_size

    def events(self) -> Iterator[Captured]:
        """The events in it, in their order."""
        with open(self._file, "rb") as lines:
            for line in lines:
                captured = captured_in(line)
                if captured is not None:
                    yield captured

    def done(self) -> None:
        """Delete it: all of it stands elsewhere."""
        os.unlink(self._file)

    def close(self) -> None:
        """Let others take it."""
        os.close(self._lock)

    def __enter__(self) -> Taken:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def holds_any(path: str | None = None) -> bool:
    """Whether anything waits in the spool."""
    path = path or place(SPOOL)
    return os.path.exists(path) or os.path.exists(f"{path}.flushing")


def taken(path: str | None = None) -> Taken | None:
    """Take away what is in the spool; None if it is empty, or somebody else has it."""
    path = path or place(SPOOL)
    flushing = f"{path}.flushing"
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.exists(flushing):
            _take_away(path, flushing)
        return Taken(lock, flushing)
    except (BlockingIOError, FileNotFoundError):
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise


def _take_away(path: str, to: str) -> None:
    """Rename the spool while nobody writes it."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.rename(path, to)
    finally:
        os.close(file)
