"""The screen of `penstock top`, from a snapshot and a state alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from penstock.cli.job_view import note
from penstock.cli.output import plain, sparkline, table
from penstock.cli.top.state import PANELS, Panel, Snapshot, State, rows_of
from penstock.cli.worker import state as worker_state
from penstock.model.clock import iso
from penstock.model.wording import ago, span

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.store.contract import QueueDepth


class Size(NamedTuple):
    """What a panel may take up, from which of its rows on, and which of those is chosen."""

    width: int
    rows: int
    first: int = 0
    chosen: int | None = None


Draw = Callable[[Snapshot, Size], "Table"]

CHOSEN, MARK = "bold on grey30", "▸"
QUEUE_WORDS = 70
SHORTEST_BAR, LONGEST_BAR = 6, 40


def queues(snapshot: Snapshot, room: Size) -> "Table":
    """How much stands in each queue; what is held says so."""
    made = bare("QUEUE", "", "QUEUED#", "RUNNING#", "PENDING#", "RETRY#", "PAUSED#", "OLDEST#")
    made.columns[2].ratio = 1  # the bar takes what is left
    most = max((depth.queued + depth.in_progress for depth in snapshot.queues), default=0)
    length = min(LONGEST_BAR, max(SHORTEST_BAR, room.width - QUEUE_WORDS))
    for place, depth in enumerate(snapshot.queues[room.first : room.first + room.rows]):
        held = depth.queue in snapshot.paused_queues
        put(
            made,
            place == room.chosen,
            f"[magenta]‖ {plain(depth.queue)}[/]" if held else plain(depth.queue),
            bar(depth, most, length),
            f"{depth.queued:,}",
            f"{depth.in_progress:,}",
            f"{depth.pending:,}",
            f"[yellow]{depth.failed:,}[/]" if depth.failed else "0",
            f"[magenta]{depth.paused:,}[/]" if depth.paused else "0",
            span(depth.oldest_queued_ms),
        )
    return made if snapshot.queues else empty("Nothing waits and nothing runs.")


def workers(snapshot: Snapshot, room: Size) -> "Table":
    """Who runs jobs, and how they are."""
    made = bare("WORKER", "PID#", "STATE", "BUSY#", "CPU#", "MEMORY#", "LAST SEEN", note="QUEUES")
    for place, worker in enumerate(snapshot.workers[room.first : room.first + room.rows]):
        put(
            made,
            place == room.chosen,
            plain(worker.name),
            str(worker.pid),
            worker_state(worker),
            f"{worker.running}/{worker.concurrency}",
            f"{worker.cpu_percent:.0f} %",
            f"{worker.memory_mb:.0f} MB",
            ago(snapshot.at - worker.heartbeat_age_ms, snapshot.at),
            plain(", ".join(worker.queues)) if worker.queues else "all",
        )
    return made if snapshot.workers else empty("No workers: start one with `penstock worker`.")


def running(snapshot: Snapshot, room: Size) -> "Table":
    """What runs, the longest first."""
    made = bare("JOB", "TYPE", "QUEUE", "FOR#", note="NOTE")
    for place, job in enumerate(snapshot.running[room.first : room.first + room.rows]):
        ran = None if job.started_at is None else max(0, snapshot.at - job.started_at)
        put(
            made,
            place == room.chosen,
            job.id,
            plain(job.type),
            plain(job.queue),
            span(ran),
            note(job, snapshot.at),
        )
    return made if snapshot.running else empty("No job runs.")


def failures(snapshot: Snapshot, room: Size) -> "Table":
    """What died last."""
    made = bare("JOB", "TYPE", "DIED", note="LAST ERROR")
    for place, letter in enumerate(snapshot.dead[room.first : room.first + room.rows]):
        put(
            made,
            place == room.chosen,
            letter.job_id,
            plain(letter.type),
            ago(letter.created_at, snapshot.at),
            f"[red]{plain(letter.error or letter.reason)}[/]",
        )
    return made if snapshot.dead else empty("No dead letters.")


DRAWN: Mapping[Panel, Draw] = {
    Panel.QUEUES: queues,
    Panel.WORKERS: workers,
    Panel.RUNNING: running,
    Panel.FAILURES: failures,
}


def bar(depth: "QueueDepth", most: int, width: int) -> str:
    """What runs and what is queued, as a share of the fullest queue."""
    if not most:
        return " " * width
    filled = -(-(depth.queued + depth.in_progress) * width // most)
    running = min(filled, -(-depth.in_progress * width // most))
    blocks = f"[bright_blue]{'█' * running}[/][cyan]{'█' * (filled - running)}[/]"
    return blocks + " " * (width - filled)


def put(made: "Table", chosen: bool, *cells: str) -> None:
    """Add a row; the chosen one is marked, in colour and without."""
    made.add_row(MARK if chosen else "", *cells, style=CHOSEN if chosen else None)


def bare(*columns: str, note: str | None = None) -> "Table":
    """A table without any line, with room for the mark of the chosen row."""
    made = table("", *columns, note=note)
    made.box = None
    made.columns[0].width = len(MARK)
    made.padding = (0, 1, 0, 0)
    made.header_style = "dim"
    made.expand = True
    return made


def empty(sentence: str) -> "Table":
    """A panel that has nothing to show."""
    made = bare(note=sentence)
    made.columns[1].header_style = "dim italic"
    return made


WIDE = 160
HEADING_ROWS = 2
EDGE_ROWS = 2
PRINTED_ROWS = 10
HEADLINE_WORDS = 60
HINTS = "↑↓ move  tab panel  p pause  c cancel  r requeue  e explain  ? help  q quit"
HELP = (
    ("↑ ↓  k j", "choose a row"),
    ("tab", "go to the next panel, shift+tab to the one before"),
    ("p", "pause the chosen queue, or resume it; in other panels its job"),
    ("c", "cancel the chosen job: one that runs is asked to stop"),
    ("r", "requeue the chosen dead job, with all its retries"),
    ("e", "explain the chosen job"),
    ("?", "show or hide this"),
    ("q", "quit; jobs keep running"),
)


def screen(snapshot: Snapshot, state: State, width: int, height: int) -> RenderableType:
    """A frame that fills a terminal of this size."""
    content: list[RenderableType] = [help_page()]
    if not state.help:
        content = sections(snapshot, state, width, height - EDGE_ROWS)
    layout = Layout()
    layout.split_column(
        Layout(headline(snapshot, width), size=1),
        Layout(Group(*content)),
        Layout(footer(state), size=1),
    )
    return layout


def printed(snapshot: Snapshot, width: int) -> RenderableType:
    """A frame for paper: no keys, no choice, as long as it has to be."""
    rows = dict.fromkeys(PANELS, PRINTED_ROWS)
    parts = [section(snapshot, None, panel, width, rows[panel]) for panel in PANELS]
    return Group(headline(snapshot, width), *parts)


def sections(snapshot: Snapshot, state: State, width: int, height: int) -> list[RenderableType]:
    """The panels, one below the other; on a wide screen the first two side by side."""
    if width < WIDE:
        rows = shared(snapshot, [[panel] for panel in PANELS], height)
        return [section(snapshot, state, panel, width, rows[panel]) for panel in PANELS]
    rows = shared(snapshot, [[Panel.QUEUES, Panel.WORKERS], *([p] for p in PANELS[2:])], height)
    half = (width - 2) // 2
    pair = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    pair.add_column(width=half)
    pair.add_column(width=half)
    pair.add_row(*(section(snapshot, state, p, half, rows[p]) for p in PANELS[:2]))
    return [pair, *(section(snapshot, state, p, width, rows[p]) for p in PANELS[2:])]


def shared(snapshot: Snapshot, lines: Sequence[Sequence[Panel]], height: int) -> dict[Panel, int]:
    """How many rows each panel gets: as many as it has, while there is room for all."""
    wanted = [max(1, *(len(rows_of(snapshot, panel)) for panel in line)) for line in lines]
    given = [1] * len(lines)
    spare = height - len(lines) * (HEADING_ROWS + 1)
    while spare > 0 and given != wanted:
        for place, wish in enumerate(wanted):
            if given[place] < wish and spare > 0:
                given[place] += 1
                spare -= 1
    return {panel: rows for line, rows in zip(lines, given, strict=True) for panel in line}


def section(
    snapshot: Snapshot, state: State | None, panel: Panel, width: int, rows: int
) -> RenderableType:
    """One panel: its name, and as many of its rows as there is room for."""
    names = rows_of(snapshot, panel)
    focused = state is not None and state.panel is panel
    selected = state.selected(snapshot, panel) if state is not None and focused else None
    first = 0 if selected is None else max(0, names.index(selected) - rows + 1)
    hidden = len(names) - len(names[first : first + rows])
    title = f"{panel} ({len(names)})" if hidden else str(panel)
    heading = Rule(
        Text(title, style="bold bright_white" if focused else "bold"),
        align="left",
        style="bright_cyan" if focused else "bright_black",
    )
    place = None if selected is None else names.index(selected) - first
    return Group(heading, DRAWN[panel](snapshot, Size(width, rows, first, place)))


def headline(snapshot: Snapshot, width: int) -> RenderableType:
    """The store's name, throughput, durations and the time."""
    total = snapshot.total
    bars = min(60, max(8, width - HEADLINE_WORDS - len(snapshot.name)))
    rates = snapshot.rates(bars)
    success = "" if total.success_rate is None else f"  {total.success_rate:.0%} ok"
    left = Text.from_markup(f"[bold]penstock[/] {plain(snapshot.name)}")
    right = Text.from_markup(
        f"[green]{sparkline(rates)}[/] [bold]{snapshot.per_second:,.1f}/s[/]"
        f"  [dim]p50[/] {span(total.duration_p50_ms)}  [dim]p95[/] {span(total.duration_p95_ms)}"
        f"{success}  [dim]{iso(snapshot.at)[11:19]}[/]"
    )
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_column(no_wrap=True, justify="right")
    grid.add_row(left, right)
    return grid


def footer(state: State) -> Text:
    """What is asked, what was done, or what can be done."""
    if state.asking is not None:
        return Text(
            f" {state.asking} y/n ", style="bold reverse", no_wrap=True, overflow="ellipsis"
        )
    if state.message:
        return Text(f" {state.message}", style="bold yellow", no_wrap=True, overflow="ellipsis")
    return Text(f" {HINTS}", style="dim", no_wrap=True, overflow="ellipsis")


def help_page() -> RenderableType:
    """What the keys do."""
    grid = Table.grid(padding=(0, 3))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for key, meaning in HELP:
        grid.add_row(key, meaning)
    return Group(Rule(Text("keys", style="bold"), align="left", style="bright_cyan"), grid)
