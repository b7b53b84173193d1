"""Charts: figures over time, drawn by the server and handed to the browser to draw better."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from markupsafe import Markup
from msgspec import Struct
from msgspec.json import encode

from penstock.model.clock import utc
from penstock.operate.stats import Point, Rate, Stats, rate_of
from penstock.store.contract import Window
from penstock.store.contract.metrics import DAY_MS, HOUR_MS, MINUTE_MS

WIDTH, HEIGHT = 600, 160
LOWEST = 0.03
"""In parts of the height: what happened is seen above the edge, however little it was."""
ROUND = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


class Line(Struct, frozen=True):
    """One line of a chart; a value that is None leaves a gap."""

    label: str
    colour: str
    values: list[float | None]
    dashed: bool = False


class Chart(Struct, frozen=True):
    """Lines over the same times, in milliseconds."""

    times: list[int]
    lines: list[Line]
    unit: str = ""

    @property
    def top(self) -> float:
        """The value at the upper edge: a round number above all of them."""
        highest = max((v for line in self.lines for v in line.values if v is not None), default=0)
        return round_up(highest)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for line in self.lines for value in line.values)

    def data(self) -> str:
        """The same for the browser, which counts in seconds."""
        lines = [
            {
                "label": line.label,
                "colour": line.colour,
                "values": line.values,
                "dashed": line.dashed,
            }
            for line in self.lines
        ]
        times = [at // 1_000 for at in self.times]
        return encode({"times": times, "series": lines, "unit": self.unit}).decode()

    def drawing(self) -> Markup:
        """The lines as SVG."""
        grid = Markup("").join(
            Markup('<path class="grid" d="M0 {y}H{w}"/>').format(y=HEIGHT * n / 4, w=WIDTH)
            for n in range(1, 4)
        )
        lines = Markup("").join(self._line(line) + self._dots(line) for line in self.lines)
        return Markup(
            '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}{}</svg>'
        ).format(WIDTH, HEIGHT, grid, lines)

    def marks(self) -> dict[str, str]:
        """What to write along the edges."""
        long = bool(self.times) and self.times[-1] - self.times[0] > DAY_MS
        return {
            "top": f"{self.top:g}{self.unit}",
            "middle": f"{self.top / 2:g}{self.unit}",
            "first": _clock(self.times[0], long=long) if self.times else "",
            "last": _clock(self.times[-1], long=long) if self.times else "",
        }

    def _line(self, line: Line) -> Markup:
        look = f"in-{line.colour} dashed" if line.dashed else f"in-{line.colour}"
        return Markup('<path class="line {}" d="{}"/>').format(look, _path(self._places(line)))

    def _dots(self, line: Line) -> Markup:
        """The values that stand alone, which a line would hide."""
        lone = alone(line.values)
        if not lone:
            return Markup()
        places = self._places(line)
        drawn = "".join(f"M{places[n]}h0" for n in lone)
        return Markup('<path class="dot in-{}" d="{}"/>').format(line.colour, drawn)

    def _places(self, line: Line) -> list[str | None]:
        last = max(1, len(line.values) - 1)
        top = self.top or 1
        return [
            None
            if value is None
            else f"{n * WIDTH / last:.1f} {HEIGHT - _raised(value / top) * (HEIGHT - 4):.1f}"
            for n, value in enumerate(line.values)
        ]


def _raised(part: float) -> float:
    return max(part, LOWEST) if part > 0 else part


def _path(places: list[str | None]) -> str:
    """A line through the places, begun anew after each gap."""
    return "".join(
        f"{'M' if before is None else 'L'}{here}"
        for before, here in pairwise([None, *places])
        if here is not None
    )


def alone(values: Sequence[float | None]) -> list[int]:
    """Where a value stands between gaps or zeros."""
    padded = [None, *values, None]
    return [
        n
        for n, (before, here, after) in enumerate(zip(padded, padded[1:], padded[2:], strict=False))
        if here and not before and not after
    ]


def sparse(values: Sequence[float]) -> list[float | None]:
    """The values without the zeros that have only zeros beside them."""
    padded = [0, *values, 0]
    return [
        here if any(near) else None
        for here, near in zip(values, zip(padded, values, padded[2:], strict=False), strict=True)
    ]


def round_up(value: float) -> float:
    """The next round number above: 12 is 15, 51 is 60."""
    if value <= 0:
        return 1.0
    size = 1.0
    while size < value:
        size *= 10
    while size / 10 >= value:
        size /= 10
    return next(size * part for part in ROUND if size * part >= value)


def stack(parts: list[tuple[str, float]], whole: float) -> Markup:
    """A bar made of coloured parts: `stack([("queued", 3), ("failed", 1)], 10)`."""
    drawn: list[Markup] = []
    at = 0.0
    for status, size in parts:
        # What is there is seen, however small it is beside the rest.
        width = max(0.8, 100 * size / whole) if size and whole else 0.0
        if width:
            drawn.append(
                Markup('<rect class="is-{}" x="{:.2f}" width="{:.2f}" height="10"/>').format(
                    status, at, width
                )
            )
        at += width
    return Markup(
        '<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        "{}</svg>"
    ).format(Markup("").join(drawn))


def _clock(at: int, *, long: bool) -> str:
    return utc(at).strftime("%d %b %H:%M UTC" if long else "%H:%M UTC")


SPANS: Mapping[str, int] = MappingProxyType(
    {"10m": 10 * MINUTE_MS, "1h": HOUR_MS, "24h": DAY_MS, "7d": 7 * DAY_MS}
)


class Figures(Struct, frozen=True):
    """What ran in a span of time."""

    total: Window
    types: list[Window]
    rate: Rate | None
    throughput: Chart
    latency: Chart


def figures_of(stats: Stats) -> Figures:
    """The figures, the busiest types first."""
    return Figures(
        total=stats.total,
        types=sorted(stats.types, key=lambda row: row.completed + row.failed, reverse=True),
        rate=rate_of(stats.step_ms, stats.series),
        throughput=throughput(stats.step_ms, stats.series),
        latency=latency(stats.series),
    )


def throughput(step_ms: int, points: list[Point]) -> Chart:
    """Executions a minute, by how they ended."""
    per = MINUTE_MS / step_ms
    lines = [
        Line("completed", "good", [round(point.completed * per, 2) for point in points]),
        Line("failed", "warn", sparse([round(point.failed * per, 2) for point in points])),
        Line("dead", "bad", sparse([round(point.dead * per, 2) for point in points])),
    ]
    return Chart([point.at for point in points], lines)


def latency(points: list[Point]) -> Chart:
    """How long executions took, and how long jobs waited for one."""
    found = [
        ("duration, p95", "busy", [point.duration_p95_ms for point in points]),
        ("duration, median", "busy", [point.duration_p50_ms for point in points]),
        ("wait, p95", "wait", [point.wait_p95_ms for point in points]),
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
