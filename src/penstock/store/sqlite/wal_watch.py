"""Notices commits made by any connection or process to a SQLite file in WAL mode."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

import apsw

_log = logging.getLogger(__name__)

_FALLBACK_SECONDS = 1.0
_POLL_FASTEST_SECONDS = 0.005
_POLL_SLOWEST_SECONDS = 0.1
_POLL_GROWTH = 1.5
_COALESCE_SECONDS = 0.002

# The WAL is written, then synced, and only then is the commit visible: waiting a share of the time
# already waited finds it soon after the sync, whether that takes 0.1 ms or 100 ms.
_RECHECK_FIRST_SECONDS = 0.0002
_RECHECK_SHARE = 0.3
_RECHECK_LIMIT_SECONDS = 0.5

# poll() rounds up to whole milliseconds, which is long for a first recheck.
_POLL_RESOLUTION_SECONDS = 0.002

_IN_MODIFY, _IN_ATTRIB, _IN_MOVED_TO, _IN_CREATE = 0x002, 0x004, 0x080, 0x100
_IN_DELETE_SELF, _IN_MOVE_SELF = 0x400, 0x800


class WalWatch:
    """Calls `on_change` from a daemon thread soon after anybody commits to `path`."""

    def __init__(self, path: str | os.PathLike[str], on_change: Callable[[], None]) -> None:
        self._path = os.path.realpath(path)
        self._on_change = on_change
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._bell: _Bell | None = None
        self._thread: threading.Thread | None = None
        self._connection: apsw.Connection | None = None
        self._version: int | None = None
        self._logged: set[str] = set()

    def start(self) -> None:
        """Start watching; every commit made after this returns is noticed."""
        with self._lock:
            if self._thread is not None:
                return
            self._bell = _open_bell(self._path + "-wal", self._stopping)
            self._thread = threading.Thread(
                target=self._run, name="penstock-wal-watch", daemon=True
            )
            self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Stop watching and wait for the thread, unless called by the thread itself."""
        with self._lock:
            self._stopping.set()
            if self._bell is not None:
                self._bell.ring()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        assert self._bell is not None
        try:
            self._moved()
            self._ready.set()
            self._watch(self._bell)
        except Exception:
            self._log_once("Watching the WAL stopped; workers go on by polling.")
        finally:
            self._ready.set()
            self._close_connection()
            with self._lock:
                self._bell.close()
                self._bell = None

    def _watch(self, bell: _Bell) -> None:
        changed = False
        while not self._stopping.is_set():
            hinted = bell.wait(bell.patience(changed))
            changed = not self._stopping.is_set() and self._recheck(bell, hinted)
            if changed:
                self._call_back()
                self._stopping.wait(_COALESCE_SECONDS)

    def _recheck(self, bell: _Bell, hinted: bool) -> bool:
        """Tell whether a commit became visible, waiting a little if the WAL was seen to change."""
        since = time.monotonic()
        while not self._moved():
            waited = time.monotonic() - since
            if not hinted or waited > _RECHECK_LIMIT_SECONDS or self._stopping.is_set():
                return False
            if bell.wait(max(_RECHECK_FIRST_SECONDS, waited * _RECHECK_SHARE)):
                self._stopping.wait(_RECHECK_FIRST_SECONDS)
                since = time.monotonic()
        return True

    def _moved(self) -> bool:
        """Tell whether `data_version` differs from the last look."""
        try:
            version = self._data_version()
        except apsw.BusyError:
            return False
        except apsw.Error:
            self._log_once("The WAL watch cannot read %s; it tries again every second.", self._path)
            self._close_connection()
            return False
        moved = version != self._version
        self._version = version
        return moved

    def _data_version(self) -> int:
        if self._connection is None:
            self._connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)
        return int(self._connection.execute("PRAGMA data_version").get)

    def _close_connection(self) -> None:
        # A new connection counts its own versions, so that nothing said before compares with it.
        self._version = None
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _call_back(self) -> None:
        try:
            self._on_change()
        except Exception:
            self._log_once("The callback of the WAL watch on %s failed.", self._path)

    def _log_once(self, message: str, *arguments: object) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _log.warning(message, *arguments, exc_info=True)


class _Bell(Protocol):
    """Waits until the WAL may have changed."""

    def patience(self, changed: bool) -> float:
        """Seconds to wait for a hint before looking without one."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait so long for a hint; tell whether it came."""
        ...

    def ring(self) -> None:
        """End the present and every later wait."""

    def close(self) -> None:
        """Give back what the operating system lent."""


def _open_bell(wal: str, stopping: threading.Event) -> _Bell:
    if sys.platform == "linux":
        try:
            return _InotifyBell(wal)
        except OSError as error:
            _log.info("inotify is not available (%s): polling data_version instead.", error)
    return _PollingBell(stopping)


class _PollingBell:
    """Looks often while there is activity and seldom when there is none."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._interval = _POLL_FASTEST_SECONDS

    def patience(self, changed: bool) -> float:
        slower = min(self._interval * _POLL_GROWTH, _POLL_SLOWEST_SECONDS)
        self._interval = _POLL_FASTEST_SECONDS if changed else slower
        return self._interval

    def wait(self, seconds: float) -> bool:
        self._stopping.wait(seconds)
        return False

    def ring(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        return None


class _InotifyBell:
    """Hears writes to the WAL file through inotify, also after it was deleted and made again."""

    def __init__(self, wal: str) -> None:
        self._wal = os.fsencode(wal)
        self._folder = os.path.dirname(self._wal)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watch = -1
        self._one_write = b""
        self._woken, self._waker = os.pipe()
        self._events = -1
        try:
            self._events = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            self._arm()
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._events, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def patience(self, changed: bool) -> float:
        return _FALLBACK_SECONDS

    def wait(self, seconds: float) -> bool:
        if seconds < _POLL_RESOLUTION_SECONDS:
            time.sleep(seconds)
            seconds = 0
        self._poll.poll(seconds * 1000)
        events = self._heard()
        if events != self._one_write:
            self._rearm()
        return bool(events)

    def ring(self) -> None:
        os.write(self._waker, b"!")

    def close(self) -> None:
        for descriptor in (self._events, self._woken, self._waker):
            if descriptor >= 0:
                os.close(descriptor)

    def _heard(self) -> bytes:
        try:
            return os.read(self._events, 65_536)
        except BlockingIOError:
            return b""

    def _rearm(self) -> None:
        # Without a watch the look at every _FALLBACK_SECONDS still finds each commit.
        with contextlib.suppress(OSError):
            self._arm()

    def _arm(self) -> None:
        """Watch the WAL file, or the folder for as long as the file does not exist."""
        # By path, never by a descriptor: closing one on a SQLite file drops the process's locks.
        try:
            watch = self._add(self._wal, _IN_MODIFY | _IN_ATTRIB | _IN_DELETE_SELF | _IN_MOVE_SELF)
        except FileNotFoundError:
            watch = self._add(self._folder, _IN_CREATE | _IN_MOVED_TO)
        if watch != self._watch:
            self._libc.inotify_rm_watch(self._events, self._watch)
            self._watch = watch
            self._one_write = struct.pack("iIII", watch, _IN_MODIFY, 0, 0)

    def _add(self, path: bytes, mask: int) -> int:
        return self._checked(self._libc.inotify_add_watch(self._events, path, mask))

    def _checked(self, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer
