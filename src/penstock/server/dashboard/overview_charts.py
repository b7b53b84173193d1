"""Stats as the overview shows them: with charts."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from penstock.client.stats import Point, Stats
from penstock.server.dashboard.charts import Chart, Line
from penstock.store.contract import Window
from penstock.store.contract.rollups import DAY_MS, HOUR_MS, MINUTE_MS

SPANS: Mapping[str, int] = MappingProxyType(
    {"10m": 10 * MINUTE_MS, "1h": HOUR_MS, "24h": DAY_MS, "7d": 7 * DAY_MS}
)


class Figures(Struct, frozen=True):
    """What ran in a span of time."""

    total: Window
    types: list[Window]
    throughput: Chart
    latency: Chart


def figures_of(stats: Stats) -> Figures:
    """The figures, the busiest types first."""
    return Figures(
        total=stats.total,
        types=sorted(stats.types, key=lambda row: row.completed + row.failed, reverse=True),
        throughput=throughput(stats.step_ms, stats.series),
        latency=latency(stats.series),
    )


def throughput(step_ms: int, points: list[Point]) -> Chart:
    """Executions a minute, by how they ended."""
    per = MINUTE_MS / step_ms
    lines = [
        Line("completed", "good", [round(point.completed * per, 2) for point in points]),
        Line("failed", "warn", [round(point.failed * per, 2) for point in points]),
        Line("dead", "bad", [round(point.dead * per, 2) for point in points]),
    ]
    return Chart([point.at for point in points], lines)


def latency(points: list[Point]) -> Chart:
    """How long executions took, and how long jobs waited for one."""
    found = [
        ("took, p95", "busy", [point.duration_p95_ms for point in points]),
        ("took, median", "busy", [point.duration_p50_ms for point in points]),
        ("waited, p95", "wait", [point.wait_p95_ms for point in points]),
    ]
    highest = max((ms for _, _, values in found for ms in values if ms is not None), default=0)
    scale, unit = (1_000, " s") if highest >= 1_000 else (1, " ms")
    lines = [
        Line(
            label,
            colour,
            [None if ms is None else round(ms / scale, 3) for ms in values],
            dashed="median" in label,
        )
        for label, colour, values in found
    ]
    return Chart([point.at for point in points], lines, unit)
