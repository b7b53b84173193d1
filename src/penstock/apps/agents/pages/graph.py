"""Memories and their edges as a picture: what came first on the left, what came of it right of it.

There are two of each: columns for a screen, and for a telephone one memory below the other, with
arcs beside them.
"""

from collections import defaultdict
from collections.abc import Sequence
from textwrap import wrap

from msgspec import Struct

from penstock.apps.agents.memory.records import Edge, Graph, Memory

WIDE, HIGH = 252, 66
ACROSS, DOWN = 72, 16
MARGIN = 8
NARROW, ARCS = 288, 38
SWEEPS = 4
LINES = 2
LINE = 28
NARROW_LINE = 34

COLOURS = {"episodic": "queued", "semantic": "completed", "procedural": "paused"}
"""The colours of what holds; what was superseded is grey."""
EDGES = {
    "part_of": ("in-busy", "became part of"),
    "supersedes": ("in-warn", "was superseded by"),
    "caused_by": ("in-bad", "led to"),
    "related_to": ("in-quiet", "is related to"),
}
"""The colour of each type of edge, and what an arrow of it says, read from left to right."""


class Node(Struct, frozen=True, kw_only=True):
    """A memory at its place; `lines` are the beginning of what it says."""

    memory: Memory
    x: int
    y: int
    status: str
    lines: list[str]
    note: str
    is_here: bool


class Arrow(Struct, frozen=True):
    """An edge from the memory that was first to the one that came of it."""

    path: str
    colour: str
    label: str
    is_dashed: bool


class Picture(Struct, frozen=True, kw_only=True):
    """What is drawn, and how large it is."""

    nodes: list[Node]
    arrows: list[Arrow]
    width: int
    height: int
    box: int
    high: int = HIGH


def wide(graph: Graph, here: str = "") -> Picture:
    """Columns from left to right, each memory right of all it came from."""
    places: dict[str, tuple[int, int]] = {}
    top, most = MARGIN, 0
    for group in _groups(graph):
        columns = _columns(group)
        tallest = max(len(column) for column in columns)
        for across, column in enumerate(columns):
            first = top + (tallest - len(column)) * (HIGH + DOWN) // 2
            for n, memory_id in enumerate(column):
                places[memory_id] = MARGIN + across * (WIDE + ACROSS), first + n * (HIGH + DOWN)
        top += tallest * (HIGH + DOWN)
        most = max(most, len(columns))
    arrows = []
    for first_id, then_id, edge in _ordered_edges(graph):
        (x, y), (to_x, to_y) = places[first_id], places[then_id]
        x, y, to_x, to_y = x + WIDE, y + HIGH // 2, to_x - 3, to_y + HIGH // 2
        bend = max(28, (to_x - x) // 2)
        head = f"M{to_x - 6} {to_y - 4}L{to_x} {to_y}L{to_x - 6} {to_y + 4}"
        path = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
        arrows.append(_arrow(edge, path, head))
    return Picture(
        nodes=[_node(each, *places[each.id], here, LINE) for each in graph.memories],
        arrows=arrows,
        width=2 * MARGIN + most * (WIDE + ACROSS) - ACROSS,
        height=top - DOWN + MARGIN,
        box=WIDE,
    )


def narrow(graph: Graph, here: str = "") -> Picture:
    """One below the other in the same order, with arcs on the left: as wide as a telephone."""
    order = [
        memory_id for group in _groups(graph) for column in _columns(group) for memory_id in column
    ]
    x = MARGIN + ARCS
    places = {memory_id: (x, MARGIN + n * (HIGH + DOWN)) for n, memory_id in enumerate(order)}
    arrows = []
    for first, then, edge in _ordered_edges(graph):
        y, to_y = places[first][1] + HIGH // 2 + 8, places[then][1] + HIGH // 2 - 8
        apart = abs(order.index(then) - order.index(first))
        left = max(MARGIN, x - 10 - 7 * apart)
        head = f"M{x - 9} {to_y - 4}L{x - 3} {to_y}L{x - 9} {to_y + 4}"
        arrows.append(_arrow(edge, f"M{x} {y}C{left} {y} {left} {to_y} {x - 3} {to_y}", head))
    return Picture(
        nodes=[_node(each, *places[each.id], here, NARROW_LINE) for each in graph.memories],
        arrows=arrows,
        width=x + NARROW + MARGIN,
        height=2 * MARGIN + len(order) * (HIGH + DOWN) - DOWN,
        box=NARROW,
    )


def legend(graph: Graph) -> list[tuple[str, str]]:
    """The colours and words of the types of edges that are drawn."""
    drawn = {edge.edge_type for edge in graph.edges}
    return [words for name, words in EDGES.items() if name in drawn]


def _node(memory: Memory, x: int, y: int, here: str, width: int) -> Node:
    lines = wrap(memory.content, width, max_lines=LINES, placeholder="…") or ["…"]
    ended = memory.valid_to is not None
    words = "superseded" if ended else memory.memory_type
    return Node(
        memory=memory,
        x=x,
        y=y,
        status="cancelled" if ended else COLOURS.get(memory.memory_type, "quiet"),
        lines=lines,
        note=f"{words}, importance {memory.importance:.2f}",
        is_here=memory.id == here,
    )


def _arrow(edge: Edge, path: str, head: str) -> Arrow:
    colour, words = EDGES.get(edge.edge_type, ("in-quiet", edge.edge_type.replace("_", " ")))
    mutual = edge.edge_type == "related_to"
    return Arrow(path if mutual else path + head, colour, words, mutual)


def _ordered_edges(graph: Graph) -> list[tuple[str, str, Edge]]:
    """Each edge with the memory that was first, and the one that came of it."""
    born = {memory.id: (memory.valid_from, memory.id) for memory in graph.memories}
    ordered = []
    for edge in graph.edges:
        if edge.source not in born or edge.target not in born:
            continue
        backwards = edge.edge_type in ("supersedes", "caused_by")
        if edge.edge_type == "related_to":
            backwards = born[edge.source] > born[edge.target]
        ends = (edge.target, edge.source) if backwards else (edge.source, edge.target)
        ordered.append((*ends, edge))
    return ordered


def _groups(graph: Graph) -> list[Graph]:
    """Memories that hang together, each group by itself: those of the latest memory first."""
    tied: dict[str, set[str]] = defaultdict(set)
    for edge in graph.edges:
        tied[edge.source].add(edge.target)
        tied[edge.target].add(edge.source)
    known = {memory.id: memory for memory in graph.memories}
    groups: list[Graph] = []
    for memory in sorted(graph.memories, key=lambda each: -each.valid_from):
        if memory.id not in known:
            continue
        reached, left = {memory.id}, [memory.id]
        while left:
            more = (tied[left.pop()] & known.keys()) - reached
            reached |= more
            left += more
        among = [each for each in graph.edges if {each.source, each.target} <= reached]
        groups.append(Graph([known.pop(each) for each in sorted(reached)], among))
    return groups


def _columns(graph: Graph) -> list[list[str]]:
    """Memories in columns, near those they are tied to, so that few lines cross."""
    before: dict[str, set[str]] = defaultdict(set)
    after: dict[str, set[str]] = defaultdict(set)
    for first, then, _ in _ordered_edges(graph):
        before[then].add(first)
        after[first].add(then)
    depth: dict[str, int] = {}
    left = [memory.id for memory in sorted(graph.memories, key=lambda each: each.valid_from)]
    while left:
        ready = [each for each in left if before[each] <= depth.keys()]
        # People may link memories in a circle: the first of them then stands leftmost.
        for memory_id in ready or left[:1]:
            known = [depth[each] for each in before[memory_id] if each in depth]
            depth[memory_id] = max(known, default=-1) + 1
        left = [each for each in left if each not in depth]
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for memory_id, column in depth.items():
        columns[column].append(memory_id)
    _pull_right(columns, depth, before, after)
    return _untangled([column for column in columns if column], before, after)


def _pull_right(
    columns: list[list[str]],
    depth: dict[str, int],
    before: dict[str, set[str]],
    after: dict[str, set[str]],
) -> None:
    """Put what came from nowhere next to what came of it."""
    for memory_id in [each for each in depth if not before[each] and after[each]]:
        wanted = min(depth[each] for each in after[memory_id]) - 1
        if wanted > 0:
            columns[0].remove(memory_id)
            columns[wanted].append(memory_id)


def _untangled(
    columns: list[list[str]], before: dict[str, set[str]], after: dict[str, set[str]]
) -> list[list[str]]:
    place = {each: float(n) for column in columns for n, each in enumerate(column)}
    for sweep in range(SWEEPS):
        tied = before if sweep % 2 == 0 else after
        for column in columns if sweep % 2 == 0 else reversed(columns):
            column.sort(key=lambda each: _middle(tied[each], place, place[each]))
            place.update((each, float(n)) for n, each in enumerate(column))
    return columns


def _middle(tied: "Sequence[str] | set[str]", place: dict[str, float], otherwise: float) -> float:
    known = [place[each] for each in tied if each in place]
    return sum(known) / len(known) if known else otherwise
