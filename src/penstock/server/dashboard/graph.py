"""A flow as a picture: layers from left to right, each job after all it waits for."""

from collections import defaultdict

from markupsafe import Markup
from msgspec import Struct

from penstock.operate.jobs import Family
from penstock.server.dashboard.render import word

WIDE, HIGH = 184, 46
ACROSS, DOWN = 64, 18
MARGIN = 8
SWEEPS = 4
TALL = 12
"""With more jobs than this above one another, each takes one line instead of two."""

SLIM, CLOSE = 26, 7
LONGEST_NAME = 22
SLIM_NAME = 13


class Node(Struct, frozen=True):
    """A job at its place."""

    id: str
    type: str
    status: str
    x: int
    y: int
    here: bool


class Arrow(Struct, frozen=True):
    """A line from a job to one that waits for it."""

    path: str
    closed: bool


class Graph(Struct, frozen=True):
    """What is drawn, and how large it is."""

    nodes: list[Node]
    arrows: list[Arrow]
    width: int
    height: int
    more: bool
    slim: bool


def graph_of(family: Family) -> Graph:
    """Lay a family out."""
    parents, children = _neighbours(family)
    columns = _ordered(_columns(family, parents), parents, children)
    tallest = max(len(column) for column in columns)
    slim = tallest > TALL
    high, down = (SLIM, CLOSE) if slim else (HIGH, DOWN)
    places: dict[str, tuple[int, int]] = {}
    for across, column in enumerate(columns):
        # Short columns stand in the middle, so that lines stay short.
        top = MARGIN + (tallest - len(column)) * (high + down) // 2
        for n, job_id in enumerate(column):
            places[job_id] = MARGIN + across * (WIDE + ACROSS), top + n * (high + down)
    return Graph(
        nodes=[_node(family, job_id, *place) for job_id, place in places.items()],
        arrows=_arrows(family, places, high),
        width=2 * MARGIN + len(columns) * (WIDE + ACROSS) - ACROSS,
        height=2 * MARGIN + tallest * (high + down) - down,
        more=family.more,
        slim=slim,
    )


def drawing(graph: Graph, job_url: str) -> Markup:
    """The picture; every job in it is a link below `job_url`."""
    arrows = Markup("").join(
        Markup('<path class="arrow{}" d="{}"/>').format("" if arrow.closed else " open", arrow.path)
        for arrow in graph.arrows
    )
    nodes = Markup("").join(_box(node, job_url, slim=graph.slim) for node in graph.nodes)
    return Markup(
        '<svg width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="group" '
        'aria-label="The flow this job belongs to">{arrows}{nodes}</svg>'
    ).format(w=graph.width, h=graph.height, arrows=arrows, nodes=nodes)


def _box(node: Node, job_url: str, *, slim: bool) -> Markup:
    high = SLIM if slim else HIGH
    longest = SLIM_NAME if slim else LONGEST_NAME
    name = node.type if len(node.type) <= longest else f"{node.type[: longest - 1]}…"
    return Markup(
        '<a class="node is-{status}{here}" href="{url}/{id}"><title>{type} {id}: {word}</title>'
        '<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="9"/>'
        '<circle cx="{dot}" cy="{middle}" r="4.5"/>'
        '<text x="{text}" y="{first}">{name}</text>'
        "{second}</a>"
    ).format(
        status=node.status,
        here=" here" if node.here else "",
        url=job_url,
        id=node.id,
        type=node.type,
        x=node.x,
        y=node.y,
        w=WIDE,
        h=high,
        dot=node.x + 16,
        middle=node.y + high // 2,
        text=node.x + 30,
        first=node.y + (17 if slim else 19),
        second=_status_at_end(node) if slim else _second_line(node),
        name=name,
        word=word(node.status),
    )


def _status_at_end(node: Node) -> Markup:
    return Markup('<text class="quiet end" x="{}" y="{}">{}</text>').format(
        node.x + WIDE - 10, node.y + 17, word(node.status)
    )


def _second_line(node: Node) -> Markup:
    return Markup('<text class="quiet" x="{}" y="{}">{} …{}</text>').format(
        node.x + 30, node.y + 35, word(node.status), node.id[-6:]
    )


def _node(family: Family, job_id: str, x: int, y: int) -> Node:
    type_, status = family.jobs[job_id]
    return Node(job_id, type_ or "?", status or "unknown", x, y, job_id == family.asked)


def _neighbours(family: Family) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    parents: dict[str, set[str]] = defaultdict(set)
    children: dict[str, set[str]] = defaultdict(set)
    for edge in family.edges.values():
        parents[edge.child_id].add(edge.edge.parent_id)
        children[edge.edge.parent_id].add(edge.child_id)
    return parents, children


def _columns(family: Family, parents: dict[str, set[str]]) -> list[list[str]]:
    """Each job one column after the last of those it waits for."""
    depth: dict[str, int] = {}
    left = sorted(family.jobs)
    while left:
        ready = [job_id for job_id in left if parents[job_id] <= depth.keys()]
        # A circle cannot be enqueued; if rows were spoilt by hand, the rest stands in one column.
        for job_id in ready or left:
            known = [depth[parent] for parent in parents[job_id] if parent in depth]
            depth[job_id] = max(known, default=-1) + 1
        left = [job_id for job_id in left if job_id not in depth]
    columns: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for job_id in sorted(depth):
        columns[depth[job_id]].append(job_id)
    return columns


def _ordered(
    columns: list[list[str]], parents: dict[str, set[str]], children: dict[str, set[str]]
) -> list[list[str]]:
    """Jobs of a column stand near those they are tied to, so that few lines cross."""
    place = {job_id: n for column in columns for n, job_id in enumerate(column)}
    for sweep in range(SWEEPS):
        tied = parents if sweep % 2 == 0 else children
        for column in columns if sweep % 2 == 0 else reversed(columns):
            column.sort(key=lambda job_id: _middle(tied[job_id], place, place[job_id]))
            place |= {job_id: n for n, job_id in enumerate(column)}
    return columns


def _middle(tied: set[str], place: dict[str, int], otherwise: int) -> float:
    known = [place[job_id] for job_id in tied if job_id in place]
    return sum(known) / len(known) if known else float(otherwise)


def _arrows(family: Family, places: dict[str, tuple[int, int]], high: int) -> list[Arrow]:
    drawn: list[Arrow] = []
    for edge in family.edges.values():
        if edge.edge.parent_id not in places or edge.child_id not in places:
            continue
        (left, top), (right, bottom) = places[edge.edge.parent_id], places[edge.child_id]
        x, y, to_x, to_y = left + WIDE, top + high // 2, right - 3, bottom + high // 2
        bend = max(24, (to_x - x) // 2)
        head = f"M{to_x - 6} {to_y - 4}L{to_x} {to_y}L{to_x - 6} {to_y + 4}"
        path = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}{head}"
        drawn.append(Arrow(path, edge.outcome is not None))
    return drawn
