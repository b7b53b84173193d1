"""A clock that stands still until a test moves it."""

from threading import Lock

from penstock.model.clock import from_iso
from penstock.model.errors import InvalidOption


class FakeClock:
    """A `Clock` for tests: `clock.advance(seconds=60)` is a minute later."""

    def __init__(self, start: str | int = "2026-01-01T00:00:00Z") -> None:
        self._lock = Lock()
        self._wall = _milliseconds(start)
        self._monotonic = 0
        self._boots = 1

    def now(self) -> int:
        """Return the wall clock in milliseconds since the epoch."""
        with self._lock:
            return self._wall

    def monotonic(self) -> int:
        """Return the milliseconds since this fake host booted, or since the clock was made."""
        with self._lock:
            return self._monotonic

    @property
    def boot_id(self) -> str:
        """Name the current boot of this fake host."""
        with self._lock:
            return f"fake-boot-{self._boots}"

    def advance(self, seconds: float) -> None:
        """Let time pass on the wall clock and the monotonic clock alike."""
        if not seconds >= 0:
            raise InvalidOption("seconds", seconds, "0 or more; set_wall() moves the wall back")
        passed = round(seconds * 1000)
        with self._lock:
            self._wall += passed
            self._monotonic += passed

    def set_wall(self, to: str | int) -> None:
        """Move the wall clock alone, as an operator or NTP would; no time passes."""
        wall = _milliseconds(to)
        with self._lock:
            self._wall = wall

    def reboot(self) -> None:
        """Start a new boot: a new boot id, and the monotonic clock back at 0."""
        with self._lock:
            self._boots += 1
            self._monotonic = 0


def _milliseconds(moment: str | int) -> int:
    return from_iso(moment) if isinstance(moment, str) else moment
