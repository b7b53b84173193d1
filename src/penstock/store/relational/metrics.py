"""Figures from the roll-ups; none of them scans the jobs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.rank import PRIORITY_STEP_MS
from penstock.store.contract import QueueDepth, Window
from penstock.store.contract.rollups import (
    DAY_MS,
    FINE_MS,
    FOLDS,
    HOUR_MS,
    STEPS_KEPT_MS,
    Figure,
    gauges_of,
    queue_depths,
    resolution_for,
    step_at,
    windows,
)
from penstock.store.relational.database import Database
from penstock.store.relational.totals import sum_up, totals
from penstock.store.relational.transaction import Transaction

AFTER_THE_SUM = 1
"""No figure of a time reaches back to the day 0, where dropped days are summed up."""


def depths(tx: Transaction, tenant_id: str | None = None) -> list[QueueDepth]:
    """Every queue that has waiting or running jobs, read from the partial indexes."""
    of = {"tenant_id": tenant_id}
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    oldest: dict[str, int] = {}
    for queue, count, due in tx.rows("queued_depths", of | {"weight": PRIORITY_STEP_MS}):
        counts[queue]["queued"] = count
        oldest[queue] = max(0, tx.now - due)
    for queue, status, count in tx.rows("waiting_depths", of):
        counts[queue][status] = count
    for queue, status, count in tx.rows("held_depths", of):
        counts[queue][status] = count
    for queue, count in tx.rows("leased_depths", of):
        counts[queue]["in_progress"] = count
    return queue_depths(counts, oldest)


def window(tx: Transaction, span_ms: int, tenant_id: str | None = None) -> list[Window]:
    """One row in all, then one per type and queue."""
    resolution = resolution_for(span_ms)
    since = max(AFTER_THE_SUM, step_at(tx.now - span_ms, resolution))
    asked: dict[str, Any] = {"resolution": resolution, "since": since, "fine": FINE_MS}
    asked["tenant_id"] = tenant_id
    return windows(tx.rows("metric_window", asked), span_ms)


def series(
    tx: Transaction,
    resolution_ms: int,
    span_ms: int,
    *,
    timings: bool,
    tenant_id: str | None = None,
) -> list[tuple[int, dict[str, float]]]:
    """Counters and gauges per step, oldest first."""
    steps: dict[int, dict[str, float]] = {}
    since = max(AFTER_THE_SUM, tx.now - span_ms)
    asked: dict[str, Any] = {"resolution": resolution_ms, "since": since, "fine": FINE_MS}
    asked |= {"timings": timings, "tenant_id": tenant_id}
    for bucket, name, value in tx.rows("metric_series", asked):
        steps.setdefault(bucket, {})[name] = value
    return list(steps.items())


def roll_up(tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
    """Keep the sampled gauges, fold fine steps into coarse ones, drop what is too old."""
    tx.lock("roll-up")
    gauges = [("", depth.queue, *gauge) for depth in sampled for gauge in gauges_of(depth).items()]
    told = {"step": FINE_MS, "bucket": step_at(tx.now, FINE_MS), "sums": encode(gauges).decode()}
    tx.run("set_metrics", told)
    # From where the last pass stopped, however long ago: a leader may have been away.
    folded_to = min(tx.value("rolled_up_at") or 0, tx.now)
    for fine, coarse in FOLDS:
        since = step_at(folded_to - 2 * coarse, coarse)
        tx.run("fold_metrics", {"fine": fine, "coarse": coarse, "since": since})
    tx.run("remember_roll_up", (tx.now,))
    summed_to = sum_up(tx)
    # A day is kept until it is in the sum, too.
    last = {step: min(summed_to, tx.now - kept) for step, kept in STEPS_KEPT_MS.items()}
    tx.run("keep_days", {"day": DAY_MS, "before": last[DAY_MS]})
    return sum(tx.run("drop_metrics", (step, before)) for step, before in last.items())


class RelationalMetrics:
    """`Metrics` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def depths(self, tenant_id: str | None = None) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs, of a tenant or of all."""
        return await self._db.read(lambda tx: depths(tx, tenant_id))

    async def dead_count(self, type: str | None = None) -> int:  # noqa: A002 - the column's name
        """How many dead letters are open, of a type or of all."""
        if type is None:
            return await self._db.read(lambda tx: int(tx.value("dead_count")))
        return await self._db.read(lambda tx: int(tx.value("dead_count_of_type", (type,))))

    async def window(self, span_ms: int, tenant_id: str | None = None) -> list[Window]:
        """Figures over the last span; long ones read coarse steps, which must be up to date."""
        if span_ms > HOUR_MS:
            await self.roll_up()
        return await self._db.read(lambda tx: window(tx, span_ms, tenant_id))

    async def series(
        self,
        resolution_ms: int,
        span_ms: int,
        *,
        timings: bool = False,
        tenant_id: str | None = None,
    ) -> list[tuple[int, dict[str, float]]]:
        """Counters per step, oldest first."""
        if resolution_ms > FINE_MS:
            await self.roll_up()
        return await self._db.read(
            lambda tx: series(tx, resolution_ms, span_ms, timings=timings, tenant_id=tenant_id)
        )

    async def totals(self) -> list[Figure]:
        """Every counter since the installation began."""
        return await self._db.read(totals)

    async def roll_up(self) -> int:
        """Fold, sample, drop; the sampling reads, so that no worker waits for it."""
        sampled = await self.depths()
        return await self._db.write(lambda tx: self.fold(tx, sampled))

    def fold(self, tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
        """Roll up; how many rows were too old."""
        return roll_up(tx, sampled)
