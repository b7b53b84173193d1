"""Figures from the roll-ups; none of them looks at the jobs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.json import decode

from penstock.model.histogram import percentile
from penstock.store.contract import QueueDepth, Window
from penstock.store.redis.courier import Courier
from penstock.store.redis.keys import decode_lane, label

FINE_MS, MINUTE_MS, HOUR_MS, DAY_MS = 10_000, 60_000, 3_600_000, 86_400_000
KEPT_MS = {
    FINE_MS: HOUR_MS,
    MINUTE_MS: 2 * DAY_MS,
    HOUR_MS: 60 * DAY_MS,
    DAY_MS: 1_000 * DAY_MS,
}
FOLDS = ((FINE_MS, MINUTE_MS), (MINUTE_MS, HOUR_MS), (HOUR_MS, DAY_MS))
STEPS_AT_ONCE = 100

Sums = dict[str, float]


class RedisMetrics:
    """`Metrics` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    async def depths(self) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs."""
        fields, waits = await self._courier.call("depths")
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for field, count in zip(fields[::2], fields[1::2], strict=True):
            place, _, queue = field.decode().partition(" ")
            counts[queue][place] = max(0, int(count))
        oldest: dict[str, int] = {}
        for lane, waited in waits:
            queue = decode_lane(lane)[0]
            oldest[queue] = max(oldest.get(queue, 0), int(waited))
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

    async def dead_count(self) -> int:
        """Dead letters nobody has looked at yet."""
        [count] = await self._courier.ask(("SCARD", self._courier.prefix + "dead:pending"))
        return int(count)

    async def window(self, span_ms: int) -> list[Window]:
        """Figures over the last span; long ones read coarse steps, which must be up to date."""
        if span_ms > HOUR_MS:
            await self.roll_up()
        resolution = next((r for r, kept in KEPT_MS.items() if span_ms <= kept), DAY_MS)
        now, _ = await self._courier.look()
        sums: dict[tuple[str, str], Sums] = defaultdict(lambda: defaultdict(float))
        for _, fields in await self._steps(resolution, (now - span_ms) // resolution * resolution):
            for name, type_, queue, value in _counters(fields):
                if not name.startswith("gauge:"):
                    sums[type_, queue][name] += value
                    sums["", ""][name] += value
        if not sums:
            sums["", ""] = defaultdict(float)
        return [_window(*names, span_ms, found) for names, found in sorted(sums.items())]

    async def series(self, resolution_ms: int, span_ms: int) -> list[tuple[int, Sums]]:
        """Counters and gauges per step, oldest first."""
        if resolution_ms > FINE_MS:
            await self.roll_up()
        now, _ = await self._courier.look()
        steps: list[tuple[int, Sums]] = []
        for bucket, fields in await self._steps(resolution_ms, now - span_ms):
            sums: Sums = {}
            for name, _, _, value in _counters(fields):
                if name == "gauge:oldest_ms":
                    sums[name] = max(sums.get(name, 0), value)
                elif not name.startswith(("duration:", "wait:")):
                    sums[name] = sums.get(name, 0) + value
            if sums:
                steps.append((bucket, sums))
        return steps

    async def roll_up(self) -> int:
        """Keep the sampled gauges, fold fine steps into coarse ones, drop what is too old."""
        await self._sample(await self.depths())
        meta = self._courier.prefix + "meta"
        now, [rolled_up_at] = await self._courier.look(("HGET", meta, "rolled_up_at"))
        # From where the last pass stopped, however long ago: a leader may have been away.
        folded_to = min(int(rolled_up_at or 0), now)
        for fine, coarse in FOLDS:
            await self._fold(fine, coarse, (folded_to - 2 * coarse) // coarse * coarse)
        await self._courier.ask(("HSET", meta, "rolled_up_at", now))
        return sum(
            [await self._courier.call("drop_metrics", each, kept) for each, kept in KEPT_MS.items()]
        )

    async def _sample(self, depths: Sequence[QueueDepth]) -> None:
        told: list[object] = []
        for depth in depths:
            gauges = {
                "depth": depth.queued,
                "pending": depth.pending,
                "in_progress": depth.in_progress,
                "oldest_ms": depth.oldest_queued_ms or 0,
            }
            for name, value in gauges.items():
                told += (f"gauge:{name}\n{label('', depth.queue)}", value)
        await self._courier.call("sample_depths", *told)

    async def _fold(self, fine: int, coarse: int, since: int) -> None:
        key = f"{self._courier.prefix}metrics:{fine}"
        [buckets] = await self._courier.ask(("ZRANGEBYSCORE", key, since, "+inf"))
        for step in sorted({int(bucket) // coarse * coarse for bucket in buckets}):
            await self._courier.call("fold_metrics", fine, coarse, step)

    async def _steps(self, resolution: int, since: int) -> list[tuple[int, Sequence[bytes]]]:
        """The steps of one resolution from a time on, oldest first, each as names and values."""
        key = f"{self._courier.prefix}metrics:{resolution}"
        [buckets] = await self._courier.ask(("ZRANGEBYSCORE", key, since, "+inf"))
        steps: list[tuple[int, Sequence[bytes]]] = []
        for first in range(0, len(buckets), STEPS_AT_ONCE):
            some = [int(bucket) for bucket in buckets[first : first + STEPS_AT_ONCE]]
            found = await self._courier.ask(*(("HGETALL", f"{key}:{bucket}") for bucket in some))
            steps += zip(some, found, strict=True)
        return steps


def _counters(fields: Sequence[bytes]) -> Iterator[tuple[str, str, str, float]]:
    """Name, type, queue and value of each figure of a step."""
    for field, value in zip(fields[::2], fields[1::2], strict=True):
        name, _, named = field.partition(b"\n")
        type_, queue = decode(named)
        yield name.decode(), type_, queue, float(value)


def _window(type_: str, queue: str, span_ms: int, sums: Sums) -> Window:
    durations = _histogram(sums, "duration:")
    waits = _histogram(sums, "wait:")
    done = sums["completed"] + sums["failed"] + sums["dead"]
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


def _histogram(sums: Sums, prefix: str) -> dict[int, float]:
    return {
        int(name.removeprefix(prefix)): value
        for name, value in sums.items()
        if name.startswith(prefix)
    }
