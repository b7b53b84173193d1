"""A session as a picture: turns, tools, changes and commits in lanes over time.

People think, eat and sleep between two prompts. Such a pause is drawn as a narrow gap of the same
width, however long it was, so that what happened can be seen. Places are hundredths of the width:
the same picture fits a telephone and a wall.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby, pairwise
from typing import TypeVar

from msgspec import Struct

from penstock.apps.recorder.records import CodeChange, Commit, Entry, SessionView, Tool, Turn
from penstock.model.wording import counted, span

LANES = 8
"""So many tools have a lane of their own, by how often they were used; the others share one."""
PAUSE_MS = 20_000
"""A pause is longer than that, and longer than what lies between two pauses on average."""
PAUSE_WIDTH = 3.0
PAUSES_WIDTH = 30.0
NUMBERED = 2.4
"""A turn that is narrower is drawn without its number."""
CLOSE = 0.12
"""Bars of one kind that are closer to each other are drawn as one."""
NARROWEST = 0.15
"""What took no time is seen, too: a browser draws nothing of a bar without a width."""
MARKS_APART = 11.0
SHORTEST_MS = 1_000

TOOLS = {
    "ok": ("in-wait", "worked"),
    "failed": ("in-bad", "failed"),
    "denied": ("is-paused", "denied"),
    "interrupted": ("in-warn", "interrupted"),
    "running": ("in-busy", "running"),
}
TURNS = {
    "complete": "is-quiet",
    "open": "in-busy",
    "interrupted": "in-warn",
    "failed": "in-bad",
}
DECISIONS = {
    "accepted": ("in-good", "kept"),
    "partial": ("in-warn", "kept in part"),
    "rejected": ("in-bad", "undone"),
    None: ("is-quiet", "not judged"),
}
"""The colours of all that may become of something, and the words for it."""

T = TypeVar("T")


class Bar(Struct, frozen=True, kw_only=True):
    """Something that took time: its place, its colour, what it was, and the turn it belongs to."""

    x: float
    width: float
    colour: str
    label: str
    turn: int
    text: str = ""


class Lane(Struct, frozen=True, kw_only=True):
    """One line of the picture; `dots` are things that took no time."""

    name: str
    note: str
    kind: str
    bars: list[Bar] = []
    dots: list[Bar] = []


class Pause(Struct, frozen=True):
    """Where nothing happened, and for how long."""

    x: float
    width: float
    label: str


class Mark(Struct, frozen=True):
    """How long after the beginning a place is."""

    x: float
    label: str


class Timeline(Struct, frozen=True, kw_only=True):
    """What is drawn."""

    lanes: list[Lane]
    pauses: list[Pause]
    marks: list[Mark]
    legend: list[tuple[str, str]]


class Scale:
    """Tells the place of a time, with pauses cut short."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        busy = _joined(spans)
        whole = sum(end - start for start, end in busy)
        self._busy = [busy[0]]
        for start, end in busy[1:]:
            first, last = self._busy[-1]
            if start - last > max(PAUSE_MS, whole / len(busy)):
                self._busy.append((start, end))
            else:
                self._busy[-1] = first, end
        gaps = len(self._busy) - 1
        self._gap = min(PAUSE_WIDTH, PAUSES_WIDTH / gaps) if gaps else 0.0
        drawn = sum(end - start for start, end in self._busy)
        self._per_ms = (100 - gaps * self._gap) / drawn
        lengths = (end - start for start, end in self._busy)
        widths = (length * self._per_ms + self._gap for length in lengths)
        self._places = [0.0, *accumulate(widths)]
        self._starts = [start for start, _ in self._busy]

    def at(self, ms: int) -> float:
        """The place of a time; one within a pause is where that begins."""
        n = bisect(self._starts, ms) - 1
        if n < 0:
            return 0.0
        start, end = self._busy[n]
        return min(100.0, self._places[n] + (min(ms, end) - start) * self._per_ms)

    def pauses(self) -> list[Pause]:
        """What was cut short."""
        return [
            Pause(self.at(end), self._gap, span(start - end))
            for (_, end), (start, _) in pairwise(self._busy)
        ]

    def marks(self) -> list[Mark]:
        """Times along the edge, counted from the beginning, with room between them."""
        begun = self._busy[0][0]
        marks = [Mark(0.0, "start")]
        for start, _ in self._busy[1:]:
            place = self.at(start)
            if place - marks[-1].x >= MARKS_APART and place <= 100 - MARKS_APART:
                marks.append(Mark(place, f"+{span(start - begun)}"))
        return [*marks, Mark(100.0, f"+{span(self._busy[-1][1] - begun)}")]


def timeline_of(view: SessionView, now: int) -> Timeline | None:
    """Lay a session out; None if nothing has happened in it."""
    spans = [
        *((turn.started_at, _turn_end(turn, view, now)) for turn in view.turns),
        *((tool.started_at, _tool_end(tool, now)) for tool in view.tools),
        *((change.at, change.at) for change in view.changes),
        *((commit.at, commit.at) for commit in view.commits),
        *((entry.at, entry.at) for entry in _notes(view.entries)),
    ]
    if not spans:
        return None
    scale = Scale(spans)
    lanes = [
        _turns([turn for turn in view.turns if turn.agent_id is None], view, scale, now, "Turns"),
        _turns([turn for turn in view.turns if turn.agent_id], view, scale, now, "Subagents"),
        *_tools(view.tools, scale, now),
        _changes(view.changes, scale),
        _commits(view.commits, view.turns, scale),
        _entries(_notes(view.entries), scale),
    ]
    used = {tool.status for tool in view.tools}
    return Timeline(
        lanes=[lane for lane in lanes if lane.bars or lane.dots],
        pauses=scale.pauses(),
        marks=scale.marks(),
        legend=[look for status, look in TOOLS.items() if status in used],
    )


def _turns(turns: Sequence[Turn], view: SessionView, scale: Scale, now: int, name: str) -> Lane:
    bars = []
    for turn in turns:
        x, width = _place(scale, turn.started_at, _turn_end(turn, view, now))
        took = span(_turn_end(turn, view, now) - turn.started_at)
        bars.append(
            Bar(
                x=x,
                width=width,
                colour=TURNS.get(turn.status, "is-quiet"),
                label=f"Turn {turn.n}, {turn.status}, {took}",
                turn=turn.n,
                text=str(turn.n) if width >= NUMBERED else "",
            )
        )
    return Lane(name=name, note=f"{len(turns):,}", kind="turns", bars=bars)


def _tools(tools: Sequence[Tool], scale: Scale, now: int) -> list[Lane]:
    by_name = _grouped(tools, lambda tool: tool.name)
    often = sorted(by_name, key=lambda name: (-len(by_name[name]), name))
    named = {name: by_name[name] for name in often[:LANES]}
    others = [tool for name in often[LANES:] for tool in by_name[name]]
    if others:
        named[counted(len(often) - LANES, "other tool")] = others
    lanes = []
    for name, used in named.items():
        failed = sum(tool.status == "failed" for tool in used)
        note = f"{len(used):,}, {failed:,} failed" if failed else f"{len(used):,}"
        bars = [_tool(tool, scale, now) for tool in sorted(used, key=lambda t: t.started_at)]
        lanes.append(Lane(name=name, note=note, kind="tools", bars=list(_merged(bars, name))))
    return lanes


def _tool(tool: Tool, scale: Scale, now: int) -> Bar:
    x, width = _place(scale, tool.started_at, _tool_end(tool, now))
    colour, word = TOOLS.get(tool.status, ("is-quiet", tool.status))
    took = f", {span(tool.duration_ms)}" if tool.duration_ms is not None else ""
    label = f"{tool.name}: {tool.summary}, {word}{took}" if tool.summary else f"{tool.name}, {word}"
    return Bar(x=x, width=width, colour=colour, label=label, turn=tool.turn)


def _merged(bars: Sequence[Bar], name: str) -> Iterable[Bar]:
    """Bars of one colour that would run into each other, as one that says how many they are."""
    if not bars:
        return
    run = [bars[0]]
    for bar in bars[1:]:
        last = run[-1]
        near = bar.x - (last.x + last.width) < CLOSE and bar.x - run[0].x < MARKS_APART
        tiny = max(bar.width, last.width) <= NARROWEST
        if near and tiny and bar.colour == last.colour and bar.turn == last.turn:
            run.append(bar)
        else:
            yield _one(run, name)
            run = [bar]
    yield _one(run, name)


def _one(run: Sequence[Bar], name: str) -> Bar:
    if len(run) == 1:
        return run[0]
    first, last = run[0], run[-1]
    return Bar(
        x=first.x,
        width=last.x + last.width - first.x,
        colour=first.colour,
        label=f"{name}, {len(run)} times",
        turn=first.turn,
    )


def _changes(changes: Sequence[CodeChange], scale: Scale) -> Lane:
    dots = []
    for change in changes:
        colour, word = DECISIONS.get(change.decision, DECISIONS[None])
        label = f"{change.kind} {change.file_path}, +{change.added} −{change.removed}, {word}"
        dots.append(
            Bar(x=scale.at(change.at), width=0, colour=colour, label=label, turn=change.turn)
        )
    added, removed = sum(c.added for c in changes), sum(c.removed for c in changes)
    return Lane(name="Changes", note=f"+{added:,} −{removed:,}", kind="dots", dots=dots)


def _commits(commits: Sequence[Commit], turns: Sequence[Turn], scale: Scale) -> Lane:
    dots = [
        Bar(
            x=scale.at(commit.at),
            width=0,
            colour="in-accent",
            label=f"commit {commit.hash[:10]} {commit.subject}".strip(),
            turn=max((turn.n for turn in turns if turn.started_at <= commit.at), default=1),
        )
        for commit in commits
    ]
    return Lane(name="Commits", note=f"{len(commits):,}", kind="dots", dots=dots)


def _entries(entries: Sequence[Entry], scale: Scale) -> Lane:
    dots = [
        Bar(
            x=scale.at(entry.at),
            width=0,
            colour="is-paused",
            label=f"{entry.kind.replace('_', ' ')} {entry.text}".strip(),
            turn=max(1, entry.turn),
        )
        for entry in entries
    ]
    return Lane(name="Notes", note=f"{len(dots):,}", kind="dots", dots=dots)


def _notes(entries: Sequence[Entry]) -> list[Entry]:
    """What happened beside turns, such as a compaction; that it began and ended is seen anyway."""
    return [entry for entry in entries if entry.kind not in ("session_start", "session_end")]


def _place(scale: Scale, start: int, end: int) -> tuple[float, float]:
    x = min(scale.at(start), 100 - NARROWEST)
    return x, max(NARROWEST, scale.at(end) - x)


def _turn_end(turn: Turn, view: SessionView, now: int) -> int:
    if turn.ended_at is not None:
        return max(turn.started_at, turn.ended_at)
    until = view.row.last_at if turn.status != "open" or view.row.ended_at else now
    following = min((t.started_at for t in view.turns if t.n > turn.n), default=until)
    return max(turn.started_at, min(until, following))


def _tool_end(tool: Tool, now: int) -> int:
    if tool.duration_ms is not None:
        return tool.started_at + max(0, tool.duration_ms)
    return max(now, tool.started_at) if tool.status == "running" else tool.started_at


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of time without those that others cover; the last takes a moment at least."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    start, end = joined[-1]
    joined[-1] = start, max(end, start + SHORTEST_MS)
    return joined


def _grouped(items: Sequence[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    return {name: list(group) for name, group in groupby(sorted(items, key=key), key)}
