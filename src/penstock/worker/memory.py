"""The memory of an execution: the peak of its process while it ran there alone, else unknown."""

import os
import time
from typing import Any

QUICK_SECONDS = 0.01
"""Executions shorter than this are not measured: it would cost more than they do."""

_FORGET_PEAK = b"5"


class PeakMemory:
    """The most memory this process held since `reset`, as Linux counts it.

    Not `ru_maxrss`: that never falls, and a process starts with the figure of its parent.
    """

    def __init__(self) -> None:
        self._reset: int | None = None
        self._status: int | None = None
        try:
            self._reset = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
            self._status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no Linux, or one that does not tell
            self.close()

    def reset(self) -> None:
        """Forget the peak so far."""
        if self._reset is not None:
            try:
                os.pwrite(self._reset, _FORGET_PEAK, 0)
            except OSError:
                self.close()

    def kb(self) -> int | None:
        """Return the peak since `reset`, in kilobytes; None where nobody knows."""
        if self._status is None:
            return None
        _, _, rest = os.pread(self._status, 4096, 0).partition(b"VmHWM:")
        return int(rest.split(maxsplit=1)[0]) if rest else None

    def close(self) -> None:
        """Know nothing from here on."""
        for descriptor in (self._reset, self._status):
            if descriptor is not None:
                os.close(descriptor)
        self._reset = self._status = None


class ExecutionMemory:
    """Tells executions in this process apart that ran alone: only those have a figure."""

    def __init__(self) -> None:
        self._peak = PeakMemory()
        self._inside = 0
        self._alone: Any = None
        self._since = 0.0
        self._quick: set[str] = set()

    def enter(self, execution: object, type_name: str) -> None:
        """An execution begins; one that is under way is not alone any more."""
        self._inside += 1
        self._alone = None
        if self._inside == 1:
            self._alone = execution
            self._since = time.monotonic()
            if type_name not in self._quick:
                self._peak.reset()

    def leave(self, execution: object, type_name: str) -> int | None:
        """An execution has ended; the kilobytes of the process, if it was alone in it."""
        self._inside -= 1
        if self._alone is not execution:
            return None
        self._alone = None
        was_quick = type_name in self._quick
        if time.monotonic() - self._since < QUICK_SECONDS:
            self._quick.add(type_name)
            return None
        self._quick.discard(type_name)
        return None if was_quick else self._peak.kb()

    def close(self) -> None:
        """Let go of what it reads."""
        self._peak.close()
