"""Circuit breakers: while what they depend on is down, jobs wait instead of failing too."""

from enum import StrEnum

from msgspec import Struct

from penstock.model.retry import ErrorClass

DEFAULT_FAILURES = 5
DEFAULT_COOL_DOWN_MS = 30_000

COUNTED = frozenset(
    {
        ErrorClass.TRANSIENT_NETWORK,
        ErrorClass.TEMPORARY_RESOURCE,
        ErrorClass.TIMEOUT,
        ErrorClass.DATABASE_ERROR,
        ErrorClass.INTERNAL_ERROR,
        ErrorClass.UNKNOWN,
    }
)
"""What says that a dependency is down; a wrong argument, say, does not."""


class BreakerPosition(StrEnum):
    """Whether jobs pass: all of them, none, or one to try."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker(Struct, frozen=True, kw_only=True):
    """Opens after so many failures in a row, for so long, for jobs of these types."""

    name: str
    types: tuple[str, ...]
    failures: int = DEFAULT_FAILURES
    cool_down_ms: int = DEFAULT_COOL_DOWN_MS


class BreakerState(Struct, frozen=True, kw_only=True):
    """A breaker and what has happened to it, shared by every process."""

    breaker: Breaker
    failed: int = 0
    opened_at: int | None = None
    probe_id: str | None = None

    def position(self, now: int) -> BreakerPosition:
        """Whether jobs pass now."""
        if self.opened_at is None:
            return BreakerPosition.CLOSED
        # A time far ahead was written before the clock was put back.
        if abs(now - self.opened_at) < self.breaker.cool_down_ms:
            return BreakerPosition.OPEN
        return BreakerPosition.HALF_OPEN

    def tries_in_ms(self, now: int) -> int | None:
        """Milliseconds until one job is let through to try; none unless it is open."""
        if self.position(now) is not BreakerPosition.OPEN:
            return None
        return (self.opened_at or 0) + self.breaker.cool_down_ms - now
