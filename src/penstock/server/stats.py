"""Figures over the last minutes, hours or days, read from the roll-ups and kept for a moment."""

import time

from msgspec import Struct

from penstock.server.window import Steps, percentile_of, steps_over
from penstock.store.contract import QueueDepth, Store, Window
from penstock.store.contract.rollups import HOUR_MS, resolution_for

FRESH_SECONDS = 2.0
# Looking back for long makes the store fold its steps, which is a write.
FRESH_LONG_SECONDS = 20.0
KEPT = 16

COUNTED = ("completed", "failed", "cancelled", "dead", "snoozed", "crashed", "lease_expiries")


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


class Stats(Struct, frozen=True, kw_only=True):
    """What happened in a window of time, in all, per type and queue, and step by step."""

    at: int
    window_ms: int
    step_ms: int
    total: Window
    types: list[Window]
    queues: list[QueueDepth]
    dead_letters: int
    series: list[Point]


class StatsDesk:
    """Stats by window, each read again only when it has aged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[int, tuple[float, Stats]] = {}

    async def over(self, span_ms: int) -> Stats:
        """What happened in the last so many milliseconds."""
        now = time.monotonic()
        until, kept = self._kept.get(span_ms, (0.0, None))
        if kept is None or now >= until:
            kept = await self._look(span_ms)
            fresh = FRESH_SECONDS if span_ms <= HOUR_MS else FRESH_LONG_SECONDS
            self._kept.pop(span_ms, None)
            self._kept[span_ms] = now + fresh, kept
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return kept

    async def _look(self, span_ms: int) -> Stats:
        metrics = self._store.metrics
        now = self._store.clock.now()
        total, *types = await metrics.window(span_ms)
        found = await metrics.series(resolution_for(span_ms), span_ms, timings=True)
        step_ms, steps = steps_over(found, span_ms, now)
        return Stats(
            at=now,
            window_ms=span_ms,
            step_ms=step_ms,
            total=total,
            types=types,
            queues=await metrics.depths(),
            dead_letters=await metrics.dead_count(),
            series=points(steps),
        )


def points(steps: Steps) -> list[Point]:
    """Steps as counts and percentiles."""
    return [
        Point(
            at=at,
            **{name: int(values.get(name, 0)) for name in COUNTED},
            duration_p50_ms=percentile_of(values, "duration:", 0.50),
            duration_p95_ms=percentile_of(values, "duration:", 0.95),
            duration_p99_ms=percentile_of(values, "duration:", 0.99),
            wait_p50_ms=percentile_of(values, "wait:", 0.50),
            wait_p95_ms=percentile_of(values, "wait:", 0.95),
            wait_p99_ms=percentile_of(values, "wait:", 0.99),
        )
        for at, values in steps
    ]
