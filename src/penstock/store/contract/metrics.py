"""Roll-ups kept while settling, so that no figure needs a scan of the jobs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from penstock.model.histogram import percentile, steps_of


class QueueDepth(Struct, frozen=True, kw_only=True):
    """How much stands in one queue; `blocked` of the pending ones wait for other jobs."""

    queue: str
    pending: int = 0
    queued: int = 0
    in_progress: int = 0
    failed: int = 0
    oldest_queued_ms: int | None = None
    blocked: int = 0
    paused: int = 0

    @property
    def jobs(self) -> int:
        """All of them."""
        return self.pending + self.queued + self.in_progress + self.failed + self.paused


class Window(Struct, frozen=True, kw_only=True):
    """Figures over a span of time for one type and queue (empty names mean all of them).

    `failed` counts executions that are followed by another; `success_rate` is of jobs that ended:
    the completed ones among those and the dead.
    """

    type: str
    queue: str
    span_ms: int
    completed: int
    failed: int
    cancelled: int
    dead: int
    snoozed: int
    crashed: int
    lease_expiries: int
    success_rate: float | None
    per_minute: float
    duration_avg_ms: float | None
    duration_max_ms: float | None
    duration_p50_ms: float | None
    duration_p95_ms: float | None
    duration_p99_ms: float | None
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    wait_p99_ms: float | None

    @property
    def executions(self) -> int:
        """How many executions ended."""
        return self.completed + self.failed + self.cancelled + self.dead + self.snoozed

    @property
    def ended(self) -> int:
        """How many jobs ended by themselves, well or badly; cancelled ones are not counted."""
        return self.completed + self.dead


class Metrics(Protocol):
    """Figures for people and alerts."""

    async def depths(self, tenant_id: str | None = None) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs, of a tenant or of all."""
        ...

    async def dead_count(self, type: str | None = None) -> int:  # noqa: A002 - the column's name
        """How many dead letters are open, of a type or of all."""
        ...

    async def window(self, span_ms: int, tenant_id: str | None = None) -> list[Window]:
        """One row per type and queue over the last span, and one in all, first.

        Of a tenant that has a name, or of all jobs.
        """
        ...

    async def series(
        self,
        resolution_ms: int,
        span_ms: int,
        *,
        timings: bool = False,
        tenant_id: str | None = None,
    ) -> list[tuple[int, dict[str, float]]]:
        """Counters per step of 10 s, 1 min, 1 h or 1 day, oldest first, of a tenant or of all.

        With `timings` also the steps of the histograms, as `duration:N` and `wait:N`.
        """
        ...

    async def totals(self) -> list[tuple[str, str, str, float]]:
        """Type, queue, name and value of every counter since the installation began.

        They only ever grow, whatever is pruned or dropped meanwhile. The names are those of the
        roll-ups, with the steps of the histograms as `duration:N` and `wait:N`.
        """
        ...

    async def erase(self, tenant_id: str) -> int:
        """Delete the counters of a tenant's own jobs; those of all jobs stay. How many."""
        ...

    async def roll_up(self) -> int:
        """Fold closed fine steps into coarse ones, sample depths, drop what is too old."""
        ...


FINE_MS, MINUTE_MS, HOUR_MS, DAY_MS = 10_000, 60_000, 3_600_000, 86_400_000
SHORTEST_MS, LONGEST_MS = FINE_MS, 1_000 * DAY_MS
"""The windows that figures are told over."""

STEPS_KEPT_MS: Mapping[int, int] = MappingProxyType(
    {
        FINE_MS: HOUR_MS,
        MINUTE_MS: 2 * DAY_MS,
        HOUR_MS: 60 * DAY_MS,
        DAY_MS: LONGEST_MS,
    }
)
"""For how long the steps of each resolution are kept."""

FOLDS = tuple(pairwise(STEPS_KEPT_MS))
"""Which steps are folded into which: each resolution into the next."""

Figure = tuple[str, str, str, float]
"""Type, queue, name and value."""

ATTEMPTS_TOLD_APART = 10

LONGEST = "duration_max"
"""The one counter whose parts are not added up: the largest of them counts."""

OF_ALL_ONLY = ("attempts:", "started")
"""Counters that are kept of all jobs together, and not once more for each tenant."""


def attempts_name(attempts: int) -> str:
    """The counter of jobs that had taken so many attempts when they ended."""
    return f"attempts:{attempts if attempts <= ATTEMPTS_TOLD_APART else 'more'}"


def of_tenant(name: str, tenant_id: str) -> str:
    """The counter of a tenant's own jobs, beside that of all: `completed@acme`."""
    return f"{name}@{tenant_id}"


def counter_of(name: str, tenant_id: str | None) -> str | None:
    """The counter behind a name, if it is one of this tenant's, or of all jobs; None if not."""
    counter, of, whose = name.partition("@")
    return counter if (whose if of else None) == tenant_id else None


def resolution_for(span_ms: int) -> int:
    """The finest steps that reach back so far."""
    return next((step for step, kept in STEPS_KEPT_MS.items() if span_ms <= kept), DAY_MS)


def step_at(moment: int, resolution_ms: int) -> int:
    """The step that a moment falls into, named by its beginning."""
    return moment // resolution_ms * resolution_ms


def windows(figures: Iterable[Figure], span_ms: int) -> list[Window]:
    """One row in all, then one per type and queue."""
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    in_all = sums["", ""]
    for type_, queue, name, value in figures:
        for row in (sums[type_, queue], in_all):
            row[name] = max(row[name], value) if name == LONGEST else row[name] + value
    return [_window(*named, span_ms, found) for named, found in sorted(sums.items())]


def queue_depths(
    counts: Mapping[str, Mapping[str, int]], oldest: Mapping[str, int]
) -> list[QueueDepth]:
    """Queues by name, from how many jobs are in which place and how long the oldest has waited."""
    return [
        QueueDepth(
            queue=queue,
            pending=found["pending"] + found["blocked"],
            queued=found["queued"],
            in_progress=found["in_progress"],
            failed=found["failed"],
            oldest_queued_ms=oldest.get(queue),
            blocked=found["blocked"],
            paused=found["paused"],
        )
        for queue, found in sorted(counts.items())
    ]


def gauges_of(depth: QueueDepth) -> dict[str, int]:
    """What a roll-up samples of a queue."""
    return {
        "gauge:depth": depth.queued,
        "gauge:pending": depth.pending,
        "gauge:in_progress": depth.in_progress,
        "gauge:oldest_ms": depth.oldest_queued_ms or 0,
    }


def _window(type_: str, queue: str, span_ms: int, sums: dict[str, float]) -> Window:
    durations, waits = steps_of(sums, "duration"), steps_of(sums, "wait")
    longest = sums[LONGEST] if durations else None
    ended = sums["completed"] + sums["dead"]
    return Window(
        type=type_,
        queue=queue,
        span_ms=span_ms,
        completed=int(sums["completed"]),
        failed=int(sums["failed"]),
        cancelled=int(sums["cancelled"]),
        dead=int(sums["dead"]),
        snoozed=int(sums["snoozed"]),
        crashed=int(sums["crashed"]),
        lease_expiries=int(sums["lease_expiries"]),
        success_rate=sums["completed"] / ended if ended else None,
        per_minute=round(sums["completed"] / span_ms * MINUTE_MS, 2),
        duration_avg_ms=_average(sums["duration_sum"], sum(durations.values())),
        duration_max_ms=longest,
        duration_p50_ms=_at_most(longest, percentile(durations, 0.50)),
        duration_p95_ms=_at_most(longest, percentile(durations, 0.95)),
        duration_p99_ms=_at_most(longest, percentile(durations, 0.99)),
        wait_p50_ms=percentile(waits, 0.50),
        wait_p95_ms=percentile(waits, 0.95),
        wait_p99_ms=percentile(waits, 0.99),
    )


def _at_most(longest: float | None, found: float | None) -> float | None:
    """Keep a percentile, which stands for a step of durations, from being above all of them."""
    return found if longest is None or found is None else min(found, longest)


def _average(total: float, count: float) -> float | None:
    return round(total / count, 1) if count else None
