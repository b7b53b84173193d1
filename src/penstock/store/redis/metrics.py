"""Figures from the roll-ups; none of them looks at the jobs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.json import decode

from penstock.store.contract import QueueDepth, Window
from penstock.store.contract.metrics import (
    FINE_MS,
    FOLDS,
    HOUR_MS,
    LONGEST,
    MINUTE_MS,
    STEPS_KEPT_MS,
    Figure,
    counter_of,
    gauges_of,
    queue_depths,
    resolution_for,
    step_at,
    windows,
)
from penstock.store.redis.keys import decode_lane, label
from penstock.store.redis.scripts import Scripts

STEPS_AT_ONCE = 100
WORDS_AT_ONCE = 1_000
UNCERTAIN_MS = 2 * MINUTE_MS
"""How far clocks may be apart of servers that take over from one another."""

AFTER_THE_SUM = 1
"""No figure of a time reaches back to the day 0, where dropped days are summed up."""

TIMINGS = ("duration:", "wait:")
TOTALS_ONLY = ("attempts:", "started", "duration_", "wait_")

Sums = dict[str, float]


class RedisMetrics:
    """`Metrics` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def depths(self, tenant_id: str | None = None) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs, of a tenant or of all."""
        counted = "depths" if tenant_id is None else f"depths:{tenant_id}"
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        oldest: dict[str, int] = {}
        after, more = b"", True
        while more:
            after, fields, waits = await self._scripts.call("depths", after, counted)
            for field, count in zip(fields[::2], fields[1::2], strict=True):
                place, _, queue = field.decode().partition(" ")
                counts[queue][place] = max(0, int(count))
            for lane, waited in waits:
                queue, whose, *_ = decode_lane(lane)
                if tenant_id in (None, whose):
                    oldest[queue] = max(oldest.get(queue, 0), int(waited))
            more = bool(after)
        return queue_depths(counts, oldest)

    async def dead_count(self, type: str | None = None) -> int:  # noqa: A002 - the column's name
        """How many dead letters are open, of a type or of all."""
        among = "letters:open" if type is None else f"letters:open:{type}"
        [count] = await self._scripts.ask(("ZCARD", self._scripts.prefix + among))
        return int(count)

    async def window(self, span_ms: int, tenant_id: str | None = None) -> list[Window]:
        """Figures over the last span; long ones read coarse steps, which must be up to date."""
        if span_ms > HOUR_MS:
            await self.roll_up()
        resolution = resolution_for(span_ms)
        now, _ = await self._scripts.look()
        steps = await self._steps(resolution, step_at(now - span_ms, resolution))
        figures = (figure for _, fields in steps for figure in _figures(fields, tenant_id))
        return windows((f for f in figures if not f[2].startswith("gauge:")), span_ms)

    async def series(
        self,
        resolution_ms: int,
        span_ms: int,
        *,
        timings: bool = False,
        tenant_id: str | None = None,
    ) -> list[tuple[int, Sums]]:
        """Counters and gauges per step, oldest first."""
        left_out = TOTALS_ONLY if timings else TOTALS_ONLY + TIMINGS
        if resolution_ms > FINE_MS:
            await self.roll_up()
        now, _ = await self._scripts.look()
        steps: list[tuple[int, Sums]] = []
        for bucket, fields in await self._steps(resolution_ms, now - span_ms):
            sums: Sums = {}
            for _, _, name, value in _figures(fields, tenant_id):
                if name == "gauge:oldest_ms":
                    sums[name] = max(sums.get(name, 0), value)
                elif not name.startswith(left_out):
                    sums[name] = sums.get(name, 0) + value
            if sums:
                steps.append((bucket, sums))
        return steps

    async def totals(self) -> list[Figure]:
        """Every counter since the installation began."""
        sums: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        for fields in await self._scripts.call("totals"):
            for type_, queue, name, value in _figures(fields):
                if not name.startswith("gauge:") and name != LONGEST:
                    sums[type_, queue, name] += value
        return [(*named, value) for named, value in sorted(sums.items())]

    async def roll_up(self) -> int:
        """Keep the sampled gauges, fold fine steps into coarse ones, drop what is too old."""
        await self._sample(await self.depths())
        meta = self._scripts.prefix + "meta"
        now, [rolled_up_at] = await self._scripts.look(("HGET", meta, "rolled_up_at"))
        # From where the last pass stopped, however long ago: a leader may have been away.
        folded_to = min(int(rolled_up_at or 0), now)
        for fine, coarse in FOLDS:
            await self._fold(fine, coarse, step_at(folded_to - UNCERTAIN_MS, coarse))
        await self._scripts.ask(("HSET", meta, "rolled_up_at", now))
        dropped = 0
        for resolution, kept in STEPS_KEPT_MS.items():
            dropped += await self._scripts.call("drop_metrics", resolution, kept)
        return dropped

    async def _sample(self, depths: Sequence[QueueDepth]) -> None:
        told: list[object] = []
        for depth in depths:
            for name, value in gauges_of(depth).items():
                told += (f"{name}\n{label('', depth.queue)}", value)
        step = b""
        for first in range(0, max(1, len(told)), WORDS_AT_ONCE):
            some = told[first : first + WORDS_AT_ONCE]
            step = await self._scripts.call("sample_depths", step, *some)

    async def erase(self, tenant_id: str) -> int:
        """Delete the counters of a tenant's own jobs, step by step, and where they stood."""
        erased = 0
        for resolution in STEPS_KEPT_MS:
            key = f"{self._scripts.prefix}metrics:{resolution}"
            [buckets] = await self._scripts.ask(("ZRANGE", key, 0, -1))
            for bucket in buckets:
                step = f"{key}:{int(bucket)}"
                [fields] = await self._scripts.ask(("HKEYS", step))
                theirs = [field for field in fields if _is_of(field, tenant_id)]
                if theirs:
                    [gone] = await self._scripts.ask(("HDEL", step, *theirs))
                    erased += int(gone)
        depths = f"{self._scripts.prefix}depths:{tenant_id}"
        [counts] = await self._scripts.ask(("HVALS", depths))
        if counts and not any(map(int, counts)):
            await self._scripts.ask(("DEL", depths))
        return erased

    async def _fold(self, fine: int, coarse: int, since: int) -> None:
        key = f"{self._scripts.prefix}metrics:{fine}"
        [buckets] = await self._scripts.ask(("ZRANGEBYSCORE", key, since, "+inf"))
        for step in sorted({step_at(int(bucket), coarse) for bucket in buckets}):
            await self._fold_step(fine, coarse, step)

    async def _fold_step(self, fine: int, coarse: int, step: int) -> None:
        within, cursor = b"", b"0"
        while True:
            asked = (fine, coarse, step, within, cursor)
            within, cursor = await self._scripts.call("fold_metrics", *asked)
            if not within:
                break

    async def _steps(self, resolution: int, since: int) -> list[tuple[int, Sequence[bytes]]]:
        """The steps of one resolution from a time on, oldest first, each as names and values."""
        key = f"{self._scripts.prefix}metrics:{resolution}"
        begin = max(AFTER_THE_SUM, since)
        [buckets] = await self._scripts.ask(("ZRANGEBYSCORE", key, begin, "+inf"))
        steps: list[tuple[int, Sequence[bytes]]] = []
        for first in range(0, len(buckets), STEPS_AT_ONCE):
            some = [int(bucket) for bucket in buckets[first : first + STEPS_AT_ONCE]]
            found = await self._scripts.ask(*(("HGETALL", f"{key}:{bucket}") for bucket in some))
            steps += zip(some, found, strict=True)
        return steps


def _is_of(field: bytes, tenant_id: str) -> bool:
    name, _, _ = field.rpartition(b"\n")
    return counter_of(name.decode(), tenant_id) is not None


def _figures(fields: Sequence[bytes], tenant_id: str | None = None) -> Iterator[Figure]:
    """What a step holds of a tenant, or of all jobs."""
    for field, value in zip(fields[::2], fields[1::2], strict=True):
        name, _, named = field.rpartition(b"\n")
        counter = counter_of(name.decode(), tenant_id)
        if counter is not None:
            type_, queue = decode(named)
            yield type_, queue, counter, float(value)
