"""Time as a value: wall clock, monotonic clock, boot id and their ISO-8601 spelling."""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from penstock.model.errors import InvalidOption

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
EARLIEST = -62_135_596_800_000
LATEST = 253_402_300_799_999
"""The first and last milliseconds of the years 1 to 9999, which are all that ISO-8601 spells."""
_LINUX_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """What penstock knows of time; the only way anything in it reads a clock."""

    def now(self) -> int:
        """Return the UTC wall clock in milliseconds since the epoch."""
        ...

    def monotonic(self) -> int:
        """Return milliseconds on a clock that all processes of this boot share and none can set."""
        ...

    @property
    def boot_id(self) -> str:
        """Name the boot within which `monotonic` values may be compared."""
        ...


class SystemClock:
    """The host's own clocks."""

    def now(self) -> int:
        """Return the UTC wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> int:
        """Return the milliseconds of the host's monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    @property
    def boot_id(self) -> str:
        """Name this boot of the host."""
        return _linux_boot_id() or _macos_boot_id() or _estimated_boot_id()


class ServerClock(SystemClock):
    """A server's wall clock, as this process last heard of it; counted on from there."""

    def __init__(self) -> None:
        self._offset = super().now() - super().monotonic()

    def heard(self, now: int) -> None:
        """Take the server's time, just received."""
        self._offset = now - self.monotonic()

    def now(self) -> int:
        """Return the server's wall clock in milliseconds since the epoch."""
        return self.monotonic() + self._offset


def utc(ms: int) -> datetime:
    """Milliseconds since the epoch as a time in UTC."""
    return _EPOCH + ms * _MILLISECOND


def milliseconds(moment: datetime) -> int:
    """A time with its zone as milliseconds since the epoch."""
    return (moment - _EPOCH) // _MILLISECOND


def iso(ms: int) -> str:
    """Spell milliseconds since the epoch as UTC: `iso(0) == "1970-01-01T00:00:00.000Z"`."""
    try:
        moment = utc(ms)
    except OverflowError:
        raise InvalidOption("time", ms, "milliseconds within the years 1 to 9999") from None
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"


def from_iso(text: str) -> int:
    """Read an ISO-8601 time with `Z` or an offset as milliseconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidOption(
            "time", text, 'an ISO-8601 time with "Z" or an offset, such as 2026-11-15T03:28:00Z'
        )
    return milliseconds(moment)


def _linux_boot_id() -> str | None:
    try:
        return _LINUX_BOOT_ID.read_text().strip() or None
    except OSError:
        return None


def _macos_boot_id() -> str | None:
    if sys.platform == "darwin":
        import ctypes

        size = ctypes.c_size_t(64)
        answer = ctypes.create_string_buffer(size.value)
        call = ctypes.CDLL(None).sysctlbyname
        failed = call(b"kern.bootsessionuuid", answer, ctypes.byref(size), None, ctypes.c_size_t(0))
        return None if failed else answer.value.decode() or None
    return None


def _estimated_boot_id() -> str:
    # Rounded to a minute so that processes which read the two clocks moments apart mostly agree.
    return f"booted-at-minute-{round((time.time() - time.monotonic()) / 60)}"
