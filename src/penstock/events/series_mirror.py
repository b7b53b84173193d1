"""Series in Redis, for other programs: derived from the store, so that nothing is missed for good.

`telemetry:series:NAME:TIME` is a hash of a span that begins at TIME, in milliseconds: the value by
labels, or of a histogram a document of figures. `telemetry:series:NAME` is the same of a window.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.events.series import AllSeries, Kind, Series, summary
from penstock.model.store_errors import StoreError

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

KEY = "telemetry:series"
MARGIN_MS = 10_000
"""A commit that took so long is still noticed."""
AT_ONCE = 2_000


class _Span(Struct, frozen=True):
    """A span of a series that has changed, or a whole window."""

    series: Series
    begins_at: int | None
    figures: dict[str, str | float]


async def mirror_series(app: "Penstock") -> None:
    """Write what has changed since the last time to Redis, if there is one; the leader's pass.

    How far that came stands in Redis itself: while it is away the store keeps what it lacks, and
    one that lost everything is given everything again.
    """
    stream = app.events.stream
    if stream is None:
        return
    key = stream.key(KEY)
    try:
        since = int(await stream.ask("GET", f"{key}:until") or 0)
        spans, until = await app.read(lambda tx: _changed(tx, app.series, since))
        commands = [command for span in spans for command in _commands(key, span)]
        await stream.ask_all([*commands, ("SET", f"{key}:until", until)])
    except StoreError:
        return  # the next pass goes on from where the last one came


def _changed(tx: Any, known: AllSeries, since: int) -> tuple[list[_Span], int]:
    queries = tx.events.queries
    rows = queries.rows("changed_series", (since, AT_ONCE))
    # Of more than these the rest follows in the next pass.
    until = max(since + 1, int(rows[-1][2])) if len(rows) == AT_ONCE else tx.now - MARGIN_MS
    spans = [
        _Span(series, int(begins_at), _figures(queries, series, int(begins_at)))
        for name, begins_at, _ in rows
        if (series := known.known().get(name)) is not None
    ]
    windows = [
        _Span(series, None, _figures(queries, series, None))
        for (name,) in queries.rows("changed_samples", (since,))
        if (series := known.known().get(name)) is not None
    ]
    return [*spans, *windows], until


def _figures(queries: Any, series: Series, begins_at: int | None) -> dict[str, str | float]:
    query = {Kind.GAUGE: "last_of_series", Kind.WINDOW: "samples"}.get(series.kind, "series")
    since, until = (0, 1 << 62) if begins_at is None else (begins_at, begins_at + 1)
    asked = {"name": series.name, "since": since, "until": until, "tenant": None}
    found: dict[str, list[tuple[Any, ...]]] = {}
    for labels, *figures in queries.rows(query, asked):
        found.setdefault(labels, []).append(tuple(figures))
    return {labels: _value(series, decode(labels), rows) for labels, rows in found.items()}


def _value(series: Series, labels: dict[str, str], rows: list[tuple[Any, ...]]) -> str | float:
    told = summary(series, labels, rows)
    if series.kind in (Kind.COUNTER, Kind.GAUGE):
        return told.total
    figures = {"count": told.count, "total": told.total, "p50": told.p50, "p95": told.p95}
    return encode({**figures, "p99": told.p99}).decode()


def _commands(key: str, span: _Span) -> list[tuple[Any, ...]]:
    name = f"{key}:{span.series.name}"
    if span.begins_at is not None:
        name += f":{span.begins_at}"
    ends_at = None if span.begins_at is None else span.begins_at + round(1000 * span.series.keep)
    pairs = [each for pair in span.figures.items() for each in pair]
    return [
        ("DEL", name),
        *([("HSET", name, *pairs)] if pairs else []),
        *([("PEXPIREAT", name, ends_at)] if pairs and ends_at is not None else []),
    ]
