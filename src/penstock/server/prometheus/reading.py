"""One look at everything that becomes a metric, kept for a second."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.model.errors import PenstockError
from penstock.model.limits import EVERY
from penstock.server.health import ping, queue_limits
from penstock.server.prometheus.names import Names
from penstock.store.contract import QueueDepth, WorkerInfo
from penstock.store.contract.rollups import Figure

if TYPE_CHECKING:
    from penstock.client.app import Penstock

FRESH_SECONDS = 1.0
MOST_TYPES = 200
MOST_QUEUES = 200

Counts = dict[str, dict[str, float]]
"""Counters by name, of each type or of each queue."""


class Reading(Struct, frozen=True, kw_only=True):
    """What the store said: counters since the beginning by type and by queue, and the gauges."""

    ping_seconds: float
    by_type: Counts
    by_queue: Counts
    active: Mapping[str, int]
    depths: Mapping[str, QueueDepth]
    limits: Mapping[str, int]
    workers: list[WorkerInfo]
    dead_letters: int


class Readings:
    """Reads the store again only when the last reading has aged; none if it does not answer."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._types = Names(MOST_TYPES)
        self._queues = Names(MOST_QUEUES)
        self._kept: Reading | None = None
        self._until = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def read(self) -> Reading | None:
        """The reading of this second."""
        async with self._one_at_a_time:
            if time.monotonic() >= self._until:
                try:
                    self._kept = await self._look()
                except PenstockError:
                    self._kept = None
                self._until = time.monotonic() + FRESH_SECONDS
            return self._kept

    async def _look(self) -> Reading:
        store = self._app.store
        ping_seconds = await ping(store)
        totals = await store.metrics.totals()
        depths = await store.metrics.depths()
        running = await store.workers.running_types()
        self._types.learn(sorted({t.name for t in self._app.types.values()}))
        self._types.learn(_by_volume(totals, 0))
        self._types.learn(sorted(running))
        self._queues.learn(sorted({t.defaults.queue for t in self._app.types.values()}))
        self._queues.learn(_by_volume(totals, 1))
        self._queues.learn(depth.queue for depth in depths)
        return Reading(
            ping_seconds=ping_seconds,
            by_type=_counts(totals, 0, self._types),
            by_queue=_counts(totals, 1, self._queues),
            active=self._active(running),
            depths=_folded(depths, self._queues),
            limits=self._limits(queue_limits(await store.controls.limits())),
            workers=await store.workers.list(),
            dead_letters=await store.metrics.dead_count(),
        )

    def _active(self, running: Mapping[str, int]) -> Mapping[str, int]:
        found: Counter[str] = Counter(dict.fromkeys(self._types.known, 0))
        for type_, number in running.items():
            found[self._types.label(type_)] += number
        return found

    def _limits(self, given: dict[str, int]) -> dict[str, int]:
        every = given.get(EVERY, self._app.settings.queue_limit)
        return {queue: given.get(queue, every) for queue in self._queues.known}


def _by_volume(totals: list[Figure], place: int) -> list[str]:
    """Names by how much was started under them, so that the busiest are learned first."""
    found: Counter[str] = Counter()
    for figure in totals:
        found[str(figure[place])] += int(figure[3]) if figure[2] == "started" else 0
    return [name for name, _ in found.most_common()]


def _counts(totals: list[Figure], place: int, names: Names) -> Counts:
    sums: defaultdict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name in names.known:
        sums[name] = defaultdict(float)
    for figure in totals:
        sums[names.label(str(figure[place]))][figure[2]] += figure[3]
    return dict(sums)


def _folded(depths: list[QueueDepth], names: Names) -> dict[str, QueueDepth]:
    """Depths by queue; a queue that was once seen and holds nothing is empty, not gone."""
    found = {name: _sum(name, []) for name in names.known}
    for label in {names.label(depth.queue) for depth in depths}:
        found[label] = _sum(label, [d for d in depths if names.label(d.queue) == label])
    return found


def _sum(queue: str, depths: list[QueueDepth]) -> QueueDepth:
    oldest = [d.oldest_queued_ms for d in depths if d.oldest_queued_ms is not None]
    return QueueDepth(
        queue=queue,
        pending=sum(d.pending for d in depths),
        queued=sum(d.queued for d in depths),
        in_progress=sum(d.in_progress for d in depths),
        failed=sum(d.failed for d in depths),
        oldest_queued_ms=max(oldest, default=None),
        blocked=sum(d.blocked for d in depths),
        paused=sum(d.paused for d in depths),
    )
