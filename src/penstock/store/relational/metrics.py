"""Figures from the roll-ups; none of them scans the jobs."""

from collections import defaultdict
from collections.abc import Sequence

from penstock.model.histogram import percentile
from penstock.model.rank import PRIORITY_STEP_MS
from penstock.store.contract import QueueDepth, Window
from penstock.store.relational.counters import FINE_MS
from penstock.store.relational.database import Database
from penstock.store.relational.transaction import Transaction

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
KEPT_MS = {
    FINE_MS: HOUR_MS,
    MINUTE_MS: 2 * DAY_MS,
    HOUR_MS: 60 * DAY_MS,
    DAY_MS: 1_000 * DAY_MS,
}
FOLDS = ((FINE_MS, MINUTE_MS), (MINUTE_MS, HOUR_MS), (HOUR_MS, DAY_MS))


def depths(tx: Transaction) -> list[QueueDepth]:
    """Every queue that has waiting or running jobs, read from the partial indexes."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    oldest: dict[str, int] = {}
    for queue, count, due in tx.rows("queued_depths", {"priority_weight": PRIORITY_STEP_MS}):
        counts[queue]["queued"] = count
        oldest[queue] = max(0, tx.now - due)
    for queue, status, count in tx.rows("waiting_depths"):
        counts[queue][status] = count
    for queue, status, count in tx.rows("held_depths"):
        counts[queue][status] = count
    for queue, count in tx.rows("leased_depths"):
        counts[queue]["in_progress"] = count
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


def window(tx: Transaction, span_ms: int) -> list[Window]:
    """One row in all, then one per type and queue."""
    resolution = next((r for r, kept in KEPT_MS.items() if span_ms <= kept), DAY_MS)
    since = (tx.now - span_ms) // resolution * resolution
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    asked = {"resolution": resolution, "since": since, "fine": FINE_MS}
    for type_, queue, name, value in tx.rows("metric_window", asked):
        sums[type_, queue][name] += value
        sums["", ""][name] += value
    if not sums:
        sums["", ""] = defaultdict(float)
    return [_window(*names, span_ms, found) for names, found in sorted(sums.items())]


def series(tx: Transaction, resolution_ms: int, span_ms: int) -> list[tuple[int, dict[str, float]]]:
    """Counters and gauges per step, oldest first."""
    steps: dict[int, dict[str, float]] = {}
    asked = {"resolution": resolution_ms, "since": tx.now - span_ms, "fine": FINE_MS}
    for bucket, name, value in tx.rows("metric_series", asked):
        steps.setdefault(bucket, {})[name] = value
    return list(steps.items())


def roll_up(tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
    """Keep the sampled gauges, fold fine steps into coarse ones, drop what is too old."""
    tx.lock("roll-up")
    bucket = tx.now // FINE_MS * FINE_MS
    for depth in sampled:
        gauges = {
            "gauge:depth": depth.queued,
            "gauge:pending": depth.pending,
            "gauge:in_progress": depth.in_progress,
            "gauge:oldest_ms": depth.oldest_queued_ms or 0,
        }
        rows = [(FINE_MS, bucket, "", depth.queue, name, n) for name, n in gauges.items()]
        tx.many("set_metric", rows)
    # From where the last pass stopped, however long ago: a leader may have been away.
    folded_to = min(tx.value("rolled_up_at") or 0, tx.now)
    for fine, coarse in FOLDS:
        since = (folded_to - 2 * coarse) // coarse * coarse
        tx.run("fold_metrics", {"fine": fine, "coarse": coarse, "since": since})
    tx.run("remember_roll_up", (tx.now,))
    dropped = 0
    for resolution, kept in KEPT_MS.items():
        dropped += tx.run("drop_metrics", (resolution, tx.now - kept))
    return dropped


def _window(type_: str, queue: str, span_ms: int, sums: dict[str, float]) -> Window:
    durations = _steps(sums, "duration:")
    waits = _steps(sums, "wait:")
    bad = sums["failed"] + sums["dead"]
    done = sums["completed"] + bad
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
        success_rate=sums["completed"] / done if done else None,
        per_minute=round(sums["completed"] / span_ms * MINUTE_MS, 2),
        duration_p50_ms=percentile(durations, 0.50),
        duration_p95_ms=percentile(durations, 0.95),
        duration_p99_ms=percentile(durations, 0.99),
        wait_p50_ms=percentile(waits, 0.50),
        wait_p95_ms=percentile(waits, 0.95),
        wait_p99_ms=percentile(waits, 0.99),
    )


def _steps(sums: dict[str, float], prefix: str) -> dict[int, float]:
    return {
        int(name.removeprefix(prefix)): value
        for name, value in sums.items()
        if name.startswith(prefix)
    }


class RelationalMetrics:
    """`Metrics` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def depths(self) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs."""
        return await self._db.read(depths)

    async def dead_count(self) -> int:
        """Dead letters nobody has looked at yet."""
        return await self._db.read(lambda tx: int(tx.value("dead_count")))

    async def window(self, span_ms: int) -> list[Window]:
        """Figures over the last span; long ones read coarse steps, which must be up to date."""
        if span_ms > HOUR_MS:
            await self.roll_up()
        return await self._db.read(lambda tx: window(tx, span_ms))

    async def series(self, resolution_ms: int, span_ms: int) -> list[tuple[int, dict[str, float]]]:
        """Counters per step, oldest first."""
        if resolution_ms > FINE_MS:
            await self.roll_up()
        return await self._db.read(lambda tx: series(tx, resolution_ms, span_ms))

    async def roll_up(self) -> int:
        """Fold, sample, drop; the sampling reads, so that the writer does not wait for it."""
        sampled = await self.depths()
        return await self._db.write(lambda tx: self.fold(tx, sampled))

    def fold(self, tx: Transaction, sampled: Sequence[QueueDepth]) -> int:
        """Roll up; how many rows were too old."""
        return roll_up(tx, sampled)
