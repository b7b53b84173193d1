"""Figures over the last minutes, hours or days, read from the roll-ups and kept for a moment."""

from collections.abc import Mapping
from functools import partial

from penstock.client.stats import Point, Stats
from penstock.model.histogram import percentile, steps_of
from penstock.server.fresh import Fresh
from penstock.server.window import Steps, steps_over
from penstock.store.contract import Store
from penstock.store.contract.rollups import HOUR_MS, resolution_for

FRESH_SECONDS = 2.0
# Looking back for long makes the store fold its steps, which is a write.
FRESH_LONG_SECONDS = 20.0
KEPT = 16

COUNTED = ("completed", "failed", "cancelled", "dead", "snoozed", "crashed", "lease_expiries")


class RecentStats:
    """Stats by window, each read again only when it has aged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[int, Fresh[Stats]] = {}

    async def over(self, span_ms: int) -> Stats:
        """What happened in the last so many milliseconds."""
        seconds = FRESH_SECONDS if span_ms <= HOUR_MS else FRESH_LONG_SECONDS
        kept = self._kept.pop(span_ms, None) or Fresh(partial(self._look, span_ms), seconds)
        self._kept[span_ms] = kept
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return await kept.get()

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
    return [_point(at, values) for at, values in steps]


def _point(at: int, values: Mapping[str, float]) -> Point:
    durations, waits = steps_of(values, "duration"), steps_of(values, "wait")
    return Point(
        at=at,
        **{name: int(values.get(name, 0)) for name in COUNTED},
        duration_p50_ms=percentile(durations, 0.50),
        duration_p95_ms=percentile(durations, 0.95),
        duration_p99_ms=percentile(durations, 0.99),
        wait_p50_ms=percentile(waits, 0.50),
        wait_p95_ms=percentile(waits, 0.95),
        wait_p99_ms=percentile(waits, 0.99),
    )
