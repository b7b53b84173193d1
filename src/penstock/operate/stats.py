"""What an installation did in a window of time, and whether that was what is promised."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from penstock.store.contract import QueueDepth, Store, Window
from penstock.store.contract.metrics import MINUTE_MS

GROUPS_AT_ONCE = 1_000


def total_jobs(total: Window, queues: Iterable[QueueDepth]) -> int:
    """How many jobs ended in a window, or wait or run now."""
    return total.completed + total.cancelled + total.dead + sum(depth.jobs for depth in queues)


async def open_letters(store: Store, tenant_id: str | None) -> int:
    """How many dead letters are open, of a tenant or of all."""
    if tenant_id is None:
        return await store.metrics.dead_count()
    count, before = 0, None
    while True:
        groups = await store.dead.groups(
            tenant_id=tenant_id, only_open=True, before=before, limit=GROUPS_AT_ONCE
        )
        count += sum(group.open for group in groups)
        if len(groups) < GROUPS_AT_ONCE:
            return count
        before = groups[-1].newest_id


class SloState(StrEnum):
    """Whether an objective was met; unknown while there is nothing to measure."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "unknown"


class Slo(Struct, frozen=True, kw_only=True):
    """An objective over a window: `target` and `measured` in words, `value` and `bound` to count.

    `bound` is what `value` must stay below, or above where `above` is set.
    """

    key: str
    name: str
    target: str
    measured: str
    unit: str
    above: bool
    bound: float
    value: float | None
    state: SloState


class Point(Struct, frozen=True, kw_only=True):
    """What happened in one step of a series."""

    at: int
    completed: int
    failed: int
    cancelled: int
    dead: int
    snoozed: int
    crashed: int
    lease_expiries: int
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


class Stats(Struct, frozen=True, kw_only=True):
    """What happened in a window of time, in all, per type and queue, and step by step.

    `total_jobs` are those that ended in it and those that wait or run now.
    """

    at: int
    window_ms: int
    step_ms: int
    total_jobs: int
    total: Window
    types: list[Window]
    queues: list[QueueDepth]
    dead_letters: int
    series: list[Point]
    slos: list[Slo] = []


class Rate(Struct, frozen=True):
    """Jobs that completed a minute, on average since the first of them and at most."""

    mean: float
    peak: float


def rate_of(step_ms: int, points: list[Point]) -> Rate | None:
    """How fast jobs completed in a series; None before any did."""
    counts = [point.completed for point in points]
    first = next((n for n, number in enumerate(counts) if number), None)
    if first is None:
        return None
    per = MINUTE_MS / step_ms
    return Rate(mean=per * sum(counts) / (len(counts) - first), peak=per * max(counts))
