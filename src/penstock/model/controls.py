"""What holds work back: pauses, limits, rates and circuit breakers."""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from penstock.model.errors import InvalidOption
from penstock.model.job import Job
from penstock.model.retry import ErrorClass


class PauseScope(StrEnum):
    """What is paused."""

    JOB = "job"
    QUEUE = "queue"
    TYPE = "type"
    TENANT = "tenant"


PAUSABLE = (PauseScope.QUEUE, PauseScope.TYPE, PauseScope.TENANT)
"""What holds back jobs together; a single job is paused by its id."""


class Pause(Struct, frozen=True, kw_only=True):
    """Who paused what, when and why."""

    scope: PauseScope
    name: str
    reason: str | None
    paused_by: str | None
    created_at: int


def pausable(job: Job) -> dict[PauseScope, str]:
    """All that a pause on a job may be about."""
    return {
        PauseScope.JOB: job.id,
        PauseScope.QUEUE: job.queue,
        PauseScope.TYPE: job.type,
        PauseScope.TENANT: job.tenant_id,
    }


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


EVERY = "*"
_UNITS_MS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_RATE = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{0,9})\s*([a-z]+)\s*")
MAX_CAPACITY = 1_000_000_000
_MAX_COUNT, _MAX_SPAN_MS = 1_000_000, 366 * 86_400_000
_STEPS = 64


class LimitScope(StrEnum):
    """What a limit is about; its name may be `*`, which means each one for itself."""

    TYPE = "type"
    KEY = "key"
    TENANT = "tenant"
    QUEUE = "queue"


class LimitKind(StrEnum):
    """What a limit bounds."""

    CONCURRENCY = "concurrency"
    RATE = "rate"
    DEPTH = "depth"


class Limit(Struct, frozen=True, kw_only=True):
    """At most `capacity` at once, or starts per `interval_ms`, or jobs waiting in a queue.

    `by_operator` outlives a deploy: what code declares does not overwrite it.
    """

    scope: LimitScope
    name: str
    kind: LimitKind
    capacity: int
    interval_ms: int | None = None
    by_operator: bool = False


class LimitState(Struct, frozen=True, kw_only=True):
    """A limit, how much of it is taken, and by which jobs (a few of them)."""

    limit: Limit
    used: int
    frees_in_ms: int | None = None
    holders: tuple[str, ...] = ()


class DepthLimits:
    """How many jobs each queue takes; 0 means any number."""

    def __init__(self, limits: Iterable[LimitState], default: int) -> None:
        found = (state.limit for state in limits if state.limit.kind is LimitKind.DEPTH)
        self._depths = {limit.name: limit.capacity for limit in found}
        self._every = self._depths.get(EVERY, default)

    def of(self, queue: str) -> int:
        """How many a queue takes."""
        return self._depths.get(queue, self._every)


LimitName = tuple[LimitScope, str]
"""What a limit is about, such as one tenant."""

Starts = list[tuple[int, int]]
"""When jobs were started under a rate, and how many: (milliseconds, count), oldest first."""


def names_of(
    queue: str, tenant_id: str, type_: str, limit_key: str | None
) -> tuple[LimitName, ...]:
    """All that a limit on a job may be about; a job may be without a tenant and a key."""
    named = (
        (LimitScope.QUEUE, queue),
        (LimitScope.TYPE, type_),
        (LimitScope.TENANT, tenant_id),
        (LimitScope.KEY, limit_key),
    )
    return tuple((scope, name) for scope, name in named if name)


def limits_on(
    limits: Iterable[Limit], queue: str, tenant_id: str, type_: str, limit_key: str | None
) -> list[Limit]:
    """The limits that hold for a job; one for `*` is named after what it is about here."""
    about = dict(names_of(queue, tenant_id, type_, limit_key))
    found: dict[tuple[LimitScope, LimitKind], Limit] = {}
    for limit in limits:
        name = about.get(limit.scope)
        if name is None or limit.kind is LimitKind.DEPTH:
            continue
        if limit.name == name:
            found[limit.scope, limit.kind] = limit
        elif limit.name == EVERY:
            found.setdefault((limit.scope, limit.kind), replace(limit, name=name))
    return list(found.values())


class Leased(NamedTuple):
    """What one owner has leased under a limit, and how much of it is marked as started."""

    leases: int
    started: int

    def taken(self, slots: int) -> int:
        """How many slots that takes up; what ran before there was a limit counts too."""
        return max(self.started, min(self.leases, slots))


NOTHING_LEASED = Leased(0, 0)


def leased_under(rows: Iterable[tuple[Any, ...]]) -> dict[LimitName, dict[str, Leased]]:
    """What each owner has leased, by all that a limit may be about.

    Of each owner and lane: owner, queue, tenant, type, limit key, leases, started ones.
    """
    found: dict[LimitName, dict[str, Leased]] = {}
    for owner, queue, tenant_id, type_, limit_key, leases, marked in rows:
        for name in names_of(queue, tenant_id, type_, limit_key):
            owners = found.setdefault(name, {})
            has = owners.get(owner, NOTHING_LEASED)
            owners[owner] = Leased(has.leases + leases, has.started + marked)
    return found


def parse_rate(text: object) -> tuple[int, int]:
    """How many per how many milliseconds: `parse_rate("10/s")` is (10, 1000)."""
    expected = "a number per time, such as '10/s', '100/min', '5/30s' or '1000/day'"
    matched = _RATE.fullmatch(text.lower()) if isinstance(text, str) else None
    unit_ms = _UNITS_MS.get(matched[3]) if matched else None
    if matched is None or unit_ms is None:
        raise InvalidOption("rate", text, expected)
    count, span = int(matched[1]), int(matched[2] or 1) * unit_ms
    if not 0 < count <= _MAX_COUNT or not 0 < span <= _MAX_SPAN_MS:
        raise InvalidOption("rate", text, expected)
    return count, span


def room(starts: Starts, limit: Limit, now: int) -> int:
    """How many more may start now, so that no window of the interval ever holds too many."""
    return max(0, limit.capacity - sum(count for _, count in _recent(starts, limit, now)))


def frees_in(starts: Starts, limit: Limit, now: int) -> int | None:
    """Milliseconds until one more may start; none when one may now."""
    recent = _recent(starts, limit, now)
    taken = sum(count for _, count in recent)
    if taken < limit.capacity:
        return None
    for at, count in recent:
        taken -= count
        if taken < limit.capacity:
            return max(1, at + (limit.interval_ms or 0) - now)
    return None


def rate_state(limit: Limit, starts: Starts, now: int) -> LimitState:
    """How much of a rate is taken, and when it lets one more start."""
    used = limit.capacity - room(starts, limit, now)
    return LimitState(limit=limit, used=used, frees_in_ms=frees_in(starts, limit, now))


def started(starts: Starts, limit: Limit, now: int, count: int) -> Starts:
    """The record with new starts in it.

    What is too old is dropped, and near times are put together under the later one, so that the
    record stays short and never forgets a start too early.
    """
    interval = limit.interval_ms or 0
    kept = _recent(starts, limit, now)
    step = max(1, interval // _STEPS)
    if kept and now // step == kept[-1][0] // step:
        count += kept.pop()[1]
    return [*kept, (max(now, kept[-1][0] if kept else now), count)]


def _recent(starts: Starts, limit: Limit, now: int) -> Starts:
    """What still counts; a time far ahead was written before the clock was put back."""
    interval = limit.interval_ms or 0
    return [(at, count) for at, count in starts if now - interval < at <= now + interval]


def check_limits(limits: Sequence[Limit]) -> None:
    """Refuse limits that would stop everything, in one sentence."""
    for limit in limits:
        capacity: object = limit.capacity
        whole = isinstance(capacity, int) and not isinstance(capacity, bool)
        if not whole or not 1 <= limit.capacity <= MAX_CAPACITY:
            expected = f"a whole number from 1 to {MAX_CAPACITY:,} (pause it to stop it)"
            raise InvalidOption(str(limit.kind), limit.capacity, expected)


class Pressure(IntEnum):
    """Green up to a tenth of the limit, then yellow, from one half on orange, and red when full."""

    GREEN = 0
    YELLOW = 1
    ORANGE = 2
    RED = 3


BEGINS_AT = ((1.0, Pressure.RED), (0.5, Pressure.ORANGE), (0.1, Pressure.YELLOW))
"""From which part of the limit on: 1,000, 5,000 and 10,000 jobs under a limit of 10,000."""


def pressure(depth: int, limit: int) -> Pressure:
    """The colour of a queue with so many jobs waiting; one without a limit (0) is always green."""
    if limit <= 0:
        return Pressure.GREEN
    return next((level for part, level in BEGINS_AT if depth >= part * limit), Pressure.GREEN)
