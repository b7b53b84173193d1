"""The pipeline as a picture: boxes from where events come in to what consumers gave up."""

from msgspec import Struct

from penstock.events.pipeline import ConsumerState, PipelineState
from penstock.events.stream import StreamState
from penstock.model.wording import span

WIDE, HIGH = 196, 62
ACROSS, DOWN = 56, 14
MARGIN = 8
NARROW, INDENT = 326, 26
LONGEST = 24


class Box(Struct, frozen=True, kw_only=True):
    """A part of the pipeline: what it is called, two lines about it, and where more is shown."""

    x: int
    y: int
    width: int
    status: str
    title: str
    first: str
    second: str
    path: str

    @property
    def entry(self) -> tuple[int, int]:
        """Where an arrow comes in."""
        return self.x, self.y + HIGH // 2

    @property
    def exit(self) -> tuple[int, int]:
        """Where an arrow goes out."""
        return self.x + self.width, self.y + HIGH // 2


class Arrow(Struct, frozen=True):
    """A line between two boxes; a dashed one is taken by what was given up."""

    path: str
    dashed: bool = False


class Picture(Struct, frozen=True, kw_only=True):
    """What is drawn, and how large it is."""

    width: int
    height: int
    boxes: list[Box]
    arrows: list[Arrow]
    high: int = HIGH


def wide(state: PipelineState, stream: StreamState | None) -> Picture:
    """From left to right: source, log, consumers above one another, dead letters."""
    rows = max(1, len(state.consumers))
    middle = MARGIN + (rows - 1) * (HIGH + DOWN) // 2
    across = WIDE + ACROSS
    source = _source(state, stream, MARGIN, middle)
    log = _log(state, MARGIN + across, middle)
    consumers = [
        _consumer(each, MARGIN + 2 * across, MARGIN + n * (HIGH + DOWN), WIDE)
        for n, each in enumerate(state.consumers)
    ]
    arrows = [_curve(source, log), *(_curve(log, box) for box in consumers)]
    boxes = [source, log, *consumers]
    if state.dead:
        dead = _dead(state, MARGIN + 3 * across, middle, WIDE)
        boxes.append(dead)
        arrows += [
            _curve(box, dead, dashed=True)
            for box, each in zip(consumers, state.consumers, strict=True)
            if each.dead
        ]
        if state.dead.get("ingest"):
            arrows.append(_beneath(log, dead, rows))
    height = 2 * MARGIN + rows * (HIGH + DOWN) - DOWN
    if state.dead.get("ingest"):
        height += DOWN
    return Picture(
        width=max(box.x + box.width for box in boxes) + MARGIN,
        height=height,
        boxes=boxes,
        arrows=arrows,
    )


def narrow(state: PipelineState, stream: StreamState | None) -> Picture:
    """From top to bottom, for a telephone: consumers hang on a line that leaves the log."""
    down = HIGH + 2 * DOWN
    source = _source(state, stream, MARGIN, MARGIN, NARROW)
    log = _log(state, MARGIN, MARGIN + down, NARROW)
    top = MARGIN + 2 * down
    boxes = [source, log]
    arrows = [_fall(source, log)]
    for n, each in enumerate(state.consumers):
        y = top + n * (HIGH + DOWN)
        box = _consumer(each, MARGIN + INDENT, y, NARROW - INDENT)
        boxes.append(box)
        arrows.append(_elbow(log, box))
    if state.dead:
        y = top + len(state.consumers) * (HIGH + DOWN)
        boxes.append(_dead(state, MARGIN + INDENT, y, NARROW - INDENT))
        arrows.append(_elbow(log, boxes[-1], dashed=True))
    last = boxes[-1]
    return Picture(
        width=NARROW + 2 * MARGIN, height=last.y + HIGH + MARGIN, boxes=boxes, arrows=arrows
    )


def shown_state(consumer: ConsumerState) -> tuple[str, str]:
    """The colour of a consumer, and what it does in words."""
    if consumer.state == "idle":
        return ("running", "caught up") if consumer.workers else ("quiet", "not running")
    return {
        "paused": ("paused", "paused"),
        "held": ("warning", "held by the pressure"),
        "sheds": ("critical", "puts work off"),
        "silent": ("silent", "no worker"),
    }.get(consumer.state, ("in_progress", "running"))


def _source(
    state: PipelineState, stream: StreamState | None, x: int, y: int, width: int = WIDE
) -> Box:
    rate = f"{_rate(state.per_second)} a second"
    if stream is None:
        return Box(
            x=x,
            y=y,
            width=width,
            status="info",
            title="Appended",
            first=rate,
            second="by programs and HTTP",
            path="events/log",
        )
    return Box(
        x=x,
        y=y,
        width=width,
        status="queued" if stream.length else "info",
        title="telemetry:events",
        first=rate,
        second=f"{stream.length:,} wait for ingest",
        path="events/log",
    )


def _log(state: PipelineState, x: int, y: int, width: int = WIDE) -> Box:
    level = state.pressure.level
    return Box(
        x=x,
        y=y,
        width=width,
        status=LEVELS[level.value],
        title="Log",
        first=f"up to sequence {state.latest:,}",
        second=f"pressure is {level.value}",
        path="events/log",
    )


LEVELS = {"green": "running", "yellow": "warning", "orange": "warning", "red": "critical"}
"""The colours of the levels."""


def _consumer(consumer: ConsumerState, x: int, y: int, width: int) -> Box:
    status, words = shown_state(consumer)
    rate = "" if not consumer.per_second else f", {_rate(consumer.per_second)} a second"
    behind = f"{consumer.depth:,} behind, {span(consumer.lag_ms)}" if consumer.depth else words
    second = words if consumer.depth else f"{consumer.role}, {consumer.workers:,} at work"
    return Box(
        x=x,
        y=y,
        width=width,
        status=status,
        title=_short(consumer.name),
        first=behind,
        second=f"{second}{rate}" if consumer.depth else second,
        path=f"events#consumer-{consumer.name}",
    )


def _dead(state: PipelineState, x: int, y: int, width: int) -> Box:
    count, ingest = sum(state.dead.values()), state.dead.get("ingest", 0)
    return Box(
        x=x,
        y=y,
        width=width,
        status="dead_letter",
        title="Dead letters",
        first=f"{count:,} given up",
        second=f"{ingest:,} by ingest, {count - ingest:,} by consumers",
        path="events/dead",
    )


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:,.1f}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _curve(a: Box, b: Box, *, dashed: bool = False) -> Arrow:
    (x, y), (to_x, to_y) = a.exit, b.entry
    to_x -= 3
    bend = (to_x - x) // 2
    return Arrow(
        f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}{_head(to_x, to_y)}", dashed
    )


def _beneath(a: Box, b: Box, rows: int) -> Arrow:
    """Around the consumers, below the last of them."""
    x, y = a.x + a.width // 2, a.y + HIGH
    to_x, to_y = b.x + b.width // 2, b.y + HIGH + 3
    floor = MARGIN + rows * (HIGH + DOWN) - DOWN + MARGIN
    path = (
        f"M{x} {y}V{floor}H{to_x}V{to_y}M{to_x - 4} {to_y + 6}L{to_x} {to_y}L{to_x + 4} {to_y + 6}"
    )
    return Arrow(path, dashed=True)


def _fall(a: Box, b: Box) -> Arrow:
    x, to_y = a.x + a.width // 2, b.y - 3
    return Arrow(f"M{x} {a.y + HIGH}V{to_y}M{x - 4} {to_y - 6}L{x} {to_y}L{x + 4} {to_y - 6}")


def _elbow(a: Box, b: Box, *, dashed: bool = False) -> Arrow:
    x, (to_x, to_y) = a.x + INDENT // 2, b.entry
    to_x -= 3
    return Arrow(f"M{x} {a.y + HIGH}V{to_y}H{to_x}{_head(to_x, to_y)}", dashed)


def _head(x: int, y: int) -> str:
    return f"M{x - 6} {y - 4}L{x} {y}L{x - 6} {y + 4}"
