"""Figures from the roll-ups; none of them scans the jobs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.job import PRIORITY_STEP_MS
from penstock.store.contract import QueueDepth, Window
from penstock.store.contract.metrics import (
    DAY_MS,
    FINE_MS,
    FOLDS,
    HOUR_MS,
    MINUTE_MS,
    STEPS_KEPT_MS,
    Figure,
    gauges_of,
    queue_depths,
    resolution_for,
    step_at,
    windows,
)
from penstock.store.relational.transaction import StorePart, Transaction, reads

LATE_MS = 2 * MINUTE_MS
"""A count may be committed so long after its time, and is folded then."""

DAYS_AT_ONCE = 30
"""So many days are added to the sum at once, where it begins with a long history."""

Piece = tuple[int, int, int]
"""The steps of one resolution from one time until another."""

FOR_EVER = 2**62
SUM: Piece = (0, 0, 1)
"""Where the sum is: one step of a resolution that no other has."""


def totals(tx: Transaction) -> list[Figure]:
    """Type, queue, name and value of every counter, by name."""
    since, until = _summed_to(tx), _folded_until(tx)
    asked = [SUM, *pieces(since, until), (FINE_MS, until, FOR_EVER)]
    return tx.rows("totals", {"pieces": encode(asked).decode()})


def sum_up(tx: Transaction) -> int:
    """Add to the sum what no roll-up will change any more; how far it reaches then."""
    since, until = _summed_to(tx), _folded_until(tx)
    first = tx.value("first_day_after", {"day": DAY_MS, "since": since})
    if first is not None:
        until = min(until, first + DAYS_AT_ONCE * DAY_MS)
    tx.run("add_to_sum", {"pieces": encode([*pieces(since, until)]).decode()})
    tx.run("remember_sum", (until,))
    return until


def pieces(since: int, until: int) -> Iterator[Piece]:
    """The fewest steps that cover a time, both ends on a minute: finer ones only at its ends."""
    hour = min(until, -step_at(-since, HOUR_MS))
    day = max(hour, min(step_at(until, HOUR_MS), -step_at(-hour, DAY_MS)))
    last_day = max(day, step_at(until, DAY_MS))
    last_hour = max(last_day, step_at(until, HOUR_MS))
    for piece in (
        (MINUTE_MS, since, hour),
        (HOUR_MS, hour, day),
        (DAY_MS, day, last_day),
        (HOUR_MS, last_day, last_hour),
        (MINUTE_MS, last_hour, until),
    ):
        if piece[1] < piece[2]:
            yield piece


def _folded_until(tx: Transaction) -> int:
    """The minute before which all steps are whole, and never before the end of the sum."""
    folded_to = min(tx.value("rolled_up_at") or 0, tx.now)
    return max(_summed_to(tx), step_at(max(0, folded_to - LATE_MS), MINUTE_MS))


def _summed_to(tx: Transaction) -> int:
    return tx.value("summed_to") or 0


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


class RelationalMetrics(StorePart):
    """`Metrics` in SQL."""

    @reads
    def depths(self, tx: Transaction, tenant_id: str | None = None) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs, of a tenant or of all."""
        return depths(tx, tenant_id)

    @reads
    def dead_count(
        self,
        tx: Transaction,
        type: str | None = None,  # noqa: A002 - the column's name
    ) -> int:
        """How many dead letters are open, of a type or of all."""
        if type is None:
            return int(tx.value("dead_count"))
        return int(tx.value("dead_count_of_type", (type,)))

    async def window(self, span_ms: int, tenant_id: str | None = None) -> list[Window]:
        """Figures over the last span; long ones read coarse steps, which must be up to date."""
        if span_ms > HOUR_MS:
            await self.roll_up()
        return await self.db.read(lambda tx: window(tx, span_ms, tenant_id))

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
        return await self.db.read(
            lambda tx: series(tx, resolution_ms, span_ms, timings=timings, tenant_id=tenant_id)
        )

    @reads
    def totals(self, tx: Transaction) -> list[Figure]:
        """Every counter since the installation began."""
        return totals(tx)

    async def erase(self, tenant_id: str) -> int:
        """Delete the counters of a tenant's own jobs, once all are where they are kept."""
        await self.roll_up()
        return await self.db.write(lambda tx: tx.run("erase_metrics", {"tenant_id": tenant_id}))

    async def roll_up(self) -> int:
        """Fold, sample, drop; the sampling reads, so that no worker waits for it."""
        sampled = await self.depths()
        return await self.db.write(lambda tx: self.fold(tx, sampled))

    def fold(self, tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
        """Roll up; how many rows were too old."""
        return roll_up(tx, sampled)
