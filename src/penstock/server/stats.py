"""Figures over the last minutes, hours or days, read from the roll-ups and kept for a moment."""

from collections.abc import Mapping
from functools import partial

from penstock.client.stats import Point, Stats, open_letters, total_jobs
from penstock.model.histogram import percentile, steps_of
from penstock.server.fresh import Fresh
from penstock.server.window import Steps, steps_over
from penstock.store.contract import Store
from penstock.store.contract.rollups import HOUR_MS, resolution_for

FRESH_SECONDS = 2.0
# Looking back for long makes the store fold its steps, which is a write.
FRESH_LONG_SECONDS = 20.0
KEPT = 100

COUNTED = ("completed", "failed", "cancelled", "dead", "snoozed", "crashed", "lease_expiries")


class RecentStats:
    """Stats by window, each read again only when it has aged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[int, str | None], Fresh[Stats]] = {}

    async def over(self, span_ms: int, tenant_id: str | None = None) -> Stats:
        """What happened in the last so many milliseconds, to a tenant's jobs or to all."""
        asked = span_ms, tenant_id
        seconds = FRESH_SECONDS if span_ms <= HOUR_MS else FRESH_LONG_SECONDS
        kept = self._kept.pop(asked, None) or Fresh(partial(self._look, *asked), seconds)
        self._kept[asked] = kept
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return await kept.get()

    async def _look(self, span_ms: int, tenant_id: str | None) -> Stats:
        metrics = self._store.metrics
        now = self._store.clock.now()
        total, *types = await metrics.window(span_ms, tenant_id)
        found = await metrics.series(
            resolution_for(span_ms), span_ms, timings=True, tenant_id=tenant_id
        )
        step_ms, steps = steps_over(found, span_ms, now)
        queues = await metrics.depths(tenant_id)
        return Stats(
            at=now,
            window_ms=span_ms,
            step_ms=step_ms,
            total_jobs=total_jobs(total, queues),
            total=total,
            types=types,
            queues=queues,
            dead_letters=await open_letters(self._store, tenant_id),
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
