"""The tables of the panels."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.job_view import note
from penstock.cli.output import plain, table
from penstock.cli.top.snapshot import Snapshot
from penstock.cli.top.state import Panel
from penstock.cli.workers import state as worker_state
from penstock.model.spans import ago, span

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.store.contract import QueueDepth


class Room(NamedTuple):
    """What a panel may take up, from which of its rows on, and which of those is chosen."""

    width: int
    rows: int
    first: int = 0
    chosen: int | None = None


Draw = Callable[[Snapshot, Room], "Table"]

CHOSEN, MARK = "bold on grey30", "▸"
QUEUE_WORDS = 70
SHORTEST_BAR, LONGEST_BAR = 6, 40


def queues(snapshot: Snapshot, room: Room) -> "Table":
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


def workers(snapshot: Snapshot, room: Room) -> "Table":
    """Who runs jobs, and how they are."""
    made = bare("WORKER", "PID#", "STATE", "BUSY#", "CPU#", "MEMORY#", "BEAT", note="QUEUES")
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


def running(snapshot: Snapshot, room: Room) -> "Table":
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


def failures(snapshot: Snapshot, room: Room) -> "Table":
    """What died last."""
    made = bare("JOB", "TYPE", "DIED", note="ERROR")
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
