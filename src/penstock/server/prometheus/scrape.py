"""One look at everything that becomes a metric, kept for a second."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.extension import Metric
from penstock.model.controls import DepthLimits
from penstock.model.errors import PenstockError
from penstock.operate.extensions import read_part
from penstock.operate.health import ping
from penstock.server.summary import Fresh
from penstock.store.contract import QueueDepth, Window, WorkerInfo
from penstock.store.contract.metrics import Figure
from penstock.worker.autoscale import WINDOW_MS

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

OTHER = "other"


class Names:
    """The first so many names that were seen keep their own series; all later ones share one.

    Names never change places: a counter that moved from one series to another would look as if
    it had been set back.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, None] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Give names a series of their own while there is room."""
        for name in names:
            if name not in self._known and len(self._known) < self._most:
                self._known[name] = None

    def label(self, name: str) -> str:
        """What a name is shown as."""
        return name if name in self._known else OTHER

    @property
    def known(self) -> list[str]:
        """Those with a series of their own."""
        return list(self._known)


FRESH_SECONDS = 1.0
MOST_TYPES = 200
MOST_QUEUES = 200
MOST_SERIES = 1_000
"""So many series a metric of an extension may have."""

Counts = dict[str, dict[str, float]]
"""Counters by name, of each type or of each queue."""


class Read(Struct, frozen=True):
    """A metric of an extension, and its figures by their labels; none if it could not be read."""

    name: str
    metric: Metric
    figures: Mapping[tuple[str, ...], float] | None


class Scrape(Struct, frozen=True, kw_only=True):
    """What the store said: counters since the beginning by type and by queue, and the gauges."""

    ping_seconds: float
    by_type: Counts
    by_queue: Counts
    active: Mapping[str, int]
    longest: Mapping[str, float]
    depths: Mapping[str, QueueDepth]
    limits: Mapping[str, int]
    workers: list[WorkerInfo]
    dead_letters: int
    lately: list[Window]
    extensions: list[Read]


class Scraper:
    """Reads the store again only when the last scrape has aged; none if it does not answer."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._types = Names(MOST_TYPES)
        self._queues = Names(MOST_QUEUES)
        self.failures: Counter[tuple[str, str]] = Counter()
        """How often each metric of an extension could not be read."""
        self._kept = Fresh(self._answered, FRESH_SECONDS)

    async def read(self) -> Scrape | None:
        """The scrape of this second."""
        return await self._kept.get()

    async def _answered(self) -> Scrape | None:
        try:
            return await self._look()
        except PenstockError:
            return None

    async def _look(self) -> Scrape:
        store = self._app.store
        ping_seconds = await ping(store)
        totals = await store.metrics.totals()
        depths = await store.metrics.depths()
        running = await store.workers.running_types()
        limits = DepthLimits(await store.controls.limits(), self._app.settings.queue_limit)
        self._types.learn(sorted({t.name for t in self._app.types.values()}))
        self._types.learn(_by_volume(totals, 0))
        self._types.learn(sorted(running))
        self._queues.learn(sorted({t.defaults.queue for t in self._app.types.values()}))
        self._queues.learn(_by_volume(totals, 1))
        self._queues.learn(depth.queue for depth in depths)
        lately = await store.metrics.window(WINDOW_MS)
        return Scrape(
            ping_seconds=ping_seconds,
            by_type=_counts(totals, 0, self._types),
            by_queue=_counts(totals, 1, self._queues),
            active=self._active(running),
            depths=_folded(depths, self._queues),
            limits={queue: limits.of(queue) for queue in self._queues.known},
            workers=await store.workers.list(),
            dead_letters=await store.metrics.dead_count(),
            longest=self._longest(lately),
            lately=lately,
            extensions=await self._of_extensions(),
        )

    async def _of_extensions(self) -> list[Read]:
        """The metrics of extensions; those that cannot be read are counted."""
        found: list[Read] = []
        for extension in self._app.extensions:
            for metric in extension.metrics:
                name = f"penstock_{extension.name}_{metric.name}"
                answer = await read_part(extension, f"metric {metric.name}", metric.read, self._app)
                figures = None if answer is None else figures_of(metric, answer)
                if figures is None:
                    self.failures[extension.name, metric.name] += 1
                found.append(Read(name, metric, figures))
        return found

    def _longest(self, lately: list[Window]) -> Mapping[str, float]:
        """The longest execution of each type of late, in seconds; 0 of one that rests."""
        found = dict.fromkeys(self._types.known, 0.0)
        for row in lately[1:]:
            name = self._types.label(row.type)
            found[name] = max(found.get(name, 0.0), (row.duration_max_ms or 0) / 1_000)
        return found

    def _active(self, running: Mapping[str, int]) -> Mapping[str, int]:
        found: Counter[str] = Counter(dict.fromkeys(self._types.known, 0))
        for type_, number in running.items():
            found[self._types.label(type_)] += number
        return found


def figures_of(metric: Metric, answer: Any) -> Mapping[tuple[str, ...], float] | None:
    """Figures by their labels; None if they do not have those that were declared."""
    given = answer if isinstance(answer, Mapping) else {(): answer}
    found = {(key,) if isinstance(key, str) else tuple(key): each for key, each in given.items()}
    fit = all(
        len(key) == len(metric.labels) and isinstance(each, int | float)
        for key, each in found.items()
    )
    if not fit:
        return None
    chosen = sorted(found.items())[:MOST_SERIES]
    return {tuple(map(str, key)): float(each) for key, each in chosen}


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
    found = {name: QueueDepth(queue=name) for name in names.known}
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
