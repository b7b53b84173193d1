"""Series: figures of an extension by time and labels: counters, gauges, histograms and windows.

adds={"events.series": (Series(name="tokens", kind=Kind.COUNTER, labels=("model",)),)}

app.series.record("tokens", 12, model="small")          # soon, from anywhere
tx.series.record("tokens", 12, event=event, model="…")  # in a consumer's commit
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct
from msgspec.json import decode, encode

from penstock.extension import load
from penstock.model.errors import InvalidOption
from penstock.model.histogram import percentile, step_of
from penstock.model.ids import new_id
from penstock.model.store_errors import StoreError
from penstock.service import Service

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.event import Event, Session
    from penstock.extension import Queries

log = structlog.get_logger("penstock.events")

NAME = re.compile(r"[a-z][a-z0-9_.]{0,63}")
LONGEST_LABEL = 100
FLUSH_SECONDS = 2.0
MOST_BUFFERED = 50_000
NO_STEP = -1


class Kind(StrEnum):
    """What becomes of a value."""

    COUNTER = "counter"
    """It is added up."""
    GAUGE = "gauge"
    """The last one stands."""
    HISTOGRAM = "histogram"
    """It is counted in its step, so that percentiles are known within 10 %."""
    WINDOW = "window"
    """The last ones are kept, as many as the window is large."""


class Series(Struct, frozen=True, kw_only=True):
    """A series as it is declared: a row spans `every` seconds and stays for `keep` seconds."""

    name: str
    kind: Kind
    labels: tuple[str, ...] = ()
    help: str = ""
    every: float = 60
    keep: float = 30 * 86_400
    size: int = 100

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidOption("name", self.name, "a word of a-z, 0-9, _ and .")
        if self.every < 1 or self.keep < self.every or self.size < 1:
            raise InvalidOption("every", self.every, "1 <= every <= keep, and size 1 or more")


OWN = (
    Series(
        name="events.stage_us",
        kind=Kind.HISTOGRAM,
        labels=("consumer", "stage"),
        every=10,
        keep=3_600,
    ),
    Series(name="events.busy_ms", kind=Kind.COUNTER, labels=("consumer",), every=10, keep=3_600),
    Series(name="events.applied", kind=Kind.COUNTER, labels=("consumer",), every=10, keep=86_400),
    Series(name="events.put_off", kind=Kind.COUNTER, labels=("consumer",)),
    Series(name="events.write_errors", kind=Kind.COUNTER, every=10),
    Series(name="events.consistency", kind=Kind.GAUGE, labels=("consumer",)),
)
"""Our own figures of the pipeline."""


class Summary(Struct, frozen=True, kw_only=True):
    """What a series says of a span of time, for one set of labels.

    `total` is the sum of a counter or histogram; `last` is the value of a gauge.
    """

    labels: dict[str, str]
    count: int
    total: float
    last: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None

    @property
    def mean(self) -> float | None:
        """The average."""
        return self.total / self.count if self.count else None


class Point(Struct, frozen=True):
    """One span of a series, for a chart."""

    at: int
    labels: dict[str, str]
    count: int
    total: float


class Place(Struct, frozen=True, order=True):
    """What tells rows of series apart: the name, the labels, and whose they are."""

    name: str
    labels: str
    tenant_id: str = ""
    person: str = ""
    consumer: str = ""
    platform: str = ""
    session_id: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All of it, as tables have it."""
        whose = (self.tenant_id, self.person, self.consumer, self.platform, self.session_id)
        return (self.name, self.labels, *whose)


class Cell(Struct, frozen=True, order=True):
    """A place, a span of time and a step: one row."""

    place: Place
    begins_at: int
    step: int

    def row(self, count: int, total: float, now: int) -> tuple[Any, ...]:
        """It and its figures, as the table has them."""
        told_apart = encode([*self.place.columns, self.begins_at, self.step])
        id_ = blake2b(told_apart, digest_size=16).hexdigest()
        return (id_, *self.place.columns, self.begins_at, self.step, count, total, now)


class Recording:
    """`tx.series` of a consumer, and `tx.events.series`: figures that are part of a commit."""

    def __init__(
        self, queries: "Queries", known: "AllSeries", now: int, consumer: str = ""
    ) -> None:
        self._queries = queries
        self._known = known
        self._now = now
        self._consumer = consumer
        self._samples = 0

    def record(
        self, name: str, value: float = 1, *, event: "Event | None" = None, **labels: str
    ) -> None:
        """Record a value; that of an event belongs to its time and session, and goes with them."""
        series = self._known.get(name)
        labelled = labels_of(series, labels)
        if event is None:
            place, at, number = Place(name, labelled, consumer=self._consumer), self._now, new_id()
        else:
            whose = (event.tenant_id, event.person or "", self._consumer)
            place = Place(name, labelled, *whose, event.platform, event.session_id)
            at = event.timestamp
            number = f"{event.sequence:015}.{self._consumer}.{name}.{self._samples}"
            self._samples += 1
        if series.kind is Kind.WINDOW:
            row = (f"{at:015}.{number}", *place.columns, at, value)
            keep_samples(self._queries, series, [row])
        else:
            row = cell_of(series, place, at, value).row(1, value, self._now)
            self._queries.run(query_of(series), row)

    def reset(self, session: "Session") -> None:
        """Forget what this consumer recorded of a session, or everybody, if this is none's."""
        asked = {
            "session_id": session.session_id,
            "platform": session.platform,
            "tenant_id": session.tenant_id,
            "consumer": self._consumer or None,
        }
        self._queries.run("reset_series", asked)
        self._queries.run("reset_samples", asked)


class AllSeries:
    """`app.series`: records figures soon, and reads them.

    What is recorded waits in memory until it is written, every few seconds; while the store is
    away it waits longer.
    """

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._declared: dict[str, Series] = {}
        self._known: dict[str, Series] = {}
        self._cells: dict[Cell, list[float]] = {}
        self._samples: list[tuple[Series, tuple[Any, ...]]] = []

    def declare(self, *series: Series) -> None:
        """Take series in, beside those that extensions bring."""
        self._declared.update({each.name: each for each in series})
        self._known = {}

    def known(self) -> Mapping[str, Series]:
        """All of them, by name."""
        if not self._known:
            self._known = {each.name: each for each in (*OWN, *self._brought())} | self._declared
        return self._known

    def get(self, name: str) -> Series:
        """One that is declared."""
        known = self.known()
        if name not in known:
            raise InvalidOption("series", name, f"one of: {', '.join(sorted(known))}")
        return known[name]

    def record(
        self, name: str, value: float = 1, *, tenant: str = "", person: str = "", **labels: str
    ) -> None:
        """Record a value; it is in the store a few seconds later."""
        series = self.get(name)
        place = Place(name, labels_of(series, labels), tenant, person)
        now = self._app.store.clock.now()
        if series.kind is Kind.WINDOW:
            self._samples.append((series, (f"{now:015}.{new_id()}", *place.columns, now, value)))
            del self._samples[:-MOST_BUFFERED]
            return
        kept = self._cells.setdefault(cell_of(series, place, now, value), [0, 0.0])
        kept[0] += 1
        kept[1] = value if series.kind is Kind.GAUGE else kept[1] + value
        while len(self._cells) > MOST_BUFFERED:
            del self._cells[next(iter(self._cells))]

    async def flush(self) -> int:
        """Write what waits; if the store is away, it goes on waiting. How many rows."""
        cells, self._cells = self._cells, {}
        samples, self._samples = self._samples, []
        if not cells and not samples:
            return 0
        try:
            await self._app.transact(lambda tx: self._write(tx, cells, samples))
        except BaseException:
            self._take_back(cells, samples)
            raise
        return len(cells) + len(samples)

    async def close(self) -> None:
        """Write the rest, before the store closes."""
        try:
            await self.flush()
        except StoreError as error:
            log.warning("series_lost", rows=len(self._cells) + len(self._samples), error=str(error))

    def _write(
        self,
        tx: Any,
        cells: Mapping[Cell, Sequence[float]],
        samples: Sequence[tuple[Series, tuple[Any, ...]]],
    ) -> None:
        queries = tx.events.queries
        # All processes write rows in the same order, so that none waits for another in a circle.
        for cell in sorted(cells):
            count, total = cells[cell]
            row = cell.row(int(count), total, tx.now)
            queries.run(query_of(self.get(cell.place.name)), row)
        for series in {each.name: each for each, _ in samples}.values():
            keep_samples(queries, series, [row for each, row in samples if each is series])

    def _take_back(
        self, cells: dict[Cell, list[float]], samples: list[tuple[Series, tuple[Any, ...]]]
    ) -> None:
        for cell, (count, total) in self._cells.items():
            kept = cells.setdefault(cell, [0, 0.0])
            kept[0] += count
            gauge = self.get(cell.place.name).kind is Kind.GAUGE
            kept[1] = total if gauge else kept[1] + total
        self._cells = cells
        self._samples = [*samples, *self._samples]

    async def read(
        self, name: str, *, seconds: float | None = None, tenant: str | None = None, **labels: str
    ) -> list[Summary]:
        """What a series says of the last `seconds`, or of all that is kept, by its labels."""
        series = self.get(name)
        kind = {Kind.GAUGE: "last_of_series", Kind.WINDOW: "samples"}.get(series.kind, "series")
        rows = await self._rows(kind, series, seconds, tenant)
        found: dict[str, list[tuple[Any, ...]]] = {}
        for labelled, *figures in rows:
            found.setdefault(labelled, []).append(tuple(figures))
        summaries = [summary(series, decode(text), each) for text, each in found.items()]
        return [each for each in summaries if labels.items() <= each.labels.items()]

    async def points(self, name: str, *, seconds: float, tenant: str | None = None) -> list[Point]:
        """The spans of a counter, gauge or histogram, the oldest first."""
        rows = await self._rows("points", self.get(name), seconds, tenant)
        return [
            Point(at, decode(text), int(count), float(total)) for at, text, count, total in rows
        ]

    async def _rows(
        self, query: str, series: Series, seconds: float | None, tenant: str | None
    ) -> list[tuple[Any, ...]]:
        def question(tx: Any) -> list[tuple[Any, ...]]:
            since = 0 if seconds is None else tx.now - round(seconds * 1000)
            if series.kind is not Kind.WINDOW:
                since -= since % round(series.every * 1000)
            asked = {"name": series.name, "since": since, "until": 1 << 62, "tenant": tenant}
            found: list[tuple[Any, ...]] = tx.events.queries.rows(query, asked)
            return found

        return await self._app.read(question)

    def _brought(self) -> Iterable[Series]:
        for extension in self._app.extensions:
            for each in extension.adds.get("events.series", ()):
                yield load(each)


def labels_of(series: Series, labels: Mapping[str, str]) -> str:
    """The labels as rows have them; they have to be those that were declared."""
    if set(labels) != set(series.labels):
        expected = f"those of {series.name}: {', '.join(series.labels) or 'none'}"
        raise InvalidOption("labels", ", ".join(sorted(labels)) or "none", expected)
    told = {name: str(labels[name])[:LONGEST_LABEL].replace("\0", "") for name in series.labels}
    return encode(told).decode()


def cell_of(series: Series, place: Place, at: int, value: float) -> Cell:
    """Where a value belongs."""
    step = step_of(value) if series.kind is Kind.HISTOGRAM else NO_STEP
    return Cell(place, at - at % round(series.every * 1000), step)


def query_of(series: Series) -> str:
    """How a row of a series is written."""
    return "set_series" if series.kind is Kind.GAUGE else "add_to_series"


def keep_samples(queries: "Queries", series: Series, rows: Sequence[tuple[Any, ...]]) -> None:
    """Keep values of a window, and let go of those that are too many."""
    queries.many("keep_sample", sorted(rows))
    for labels, tenant_id in sorted({(row[2], row[3]) for row in rows}):
        asked = {"name": series.name, "labels": labels, "tenant_id": tenant_id, "size": series.size}
        queries.run("trim_samples", asked)


def summary(series: Series, labels: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> Summary:
    """The rows of one set of labels, summed up."""
    if series.kind is Kind.WINDOW:
        values = [float(value) for (value,) in rows]
        ranked = sorted(values)
        return Summary(
            labels=labels,
            count=len(values),
            total=sum(values),
            last=values[-1],
            p50=ranked[round(0.5 * (len(ranked) - 1))],
            p95=ranked[round(0.95 * (len(ranked) - 1))],
            p99=ranked[round(0.99 * (len(ranked) - 1))],
        )
    if series.kind is Kind.GAUGE:
        count, last = rows[-1]
        return Summary(labels=labels, count=int(count), total=float(last), last=float(last))
    steps = {int(step): float(count) for step, count, _ in rows if step != NO_STEP}
    return Summary(
        labels=labels,
        count=sum(int(count) for _, count, _ in rows),
        total=sum(float(total) for *_, total in rows),
        p50=percentile(steps, 0.5),
        p95=percentile(steps, 0.95),
        p99=percentile(steps, 0.99),
    )


class Flushing(Service):
    """Writes what is recorded in this process."""

    name = "events.series"

    def __init__(self, app: "Penstock") -> None:
        super().__init__(FLUSH_SECONDS)
        self._app = app

    async def run_once(self) -> None:
        """Write what waits, unless the store is away."""
        try:
            await flush(self._app)
        except StoreError as error:
            log.info("series_wait", error=str(error))

    async def stop(self) -> None:
        """Stop, and write the rest."""
        await super().stop()
        await self.run_once()


async def flush(app: "Penstock") -> None:
    """Write what this process has recorded."""
    await app.series.flush()


async def prune(app: "Penstock") -> None:
    """Delete what is older than its series is kept; the leader's pass."""
    known: Mapping[str, Series] = app.series.known()

    def work(tx: Any) -> None:
        for each in known.values():
            until = tx.now - round(each.keep * 1000)
            query = "prune_samples" if each.kind is Kind.WINDOW else "prune_series"
            tx.events.queries.run(query, (each.name, until))

    await app.transact(work)
