"""The live screen."""

import math

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.job_view import note, tries
from penstock.cli.output import plain, sparkline, styled, table
from penstock.demo.scene import Scene
from penstock.model.spans import ago

STORY_LINES = 6
HEADLINE_WORDS = 76
STORY_MARGIN = 10  # the frame and the time
QUEUES = 5
FIXED_ROWS = 1 + (2 + STORY_LINES) + (2 + 1 + QUEUES)
EDGE = "bright_black"


def screen(scene: Scene, width: int, height: int) -> RenderableType:
    """The whole screen for one moment; a low terminal shows fewer jobs."""
    spare = height - FIXED_ROWS
    bars = 5 if spare >= 18 else 4
    jobs = min(10, spare - (2 + bars) - (2 + 1))
    tables = Table.grid(expand=True)
    tables.add_column(ratio=1)
    tables.add_column(ratio=1)
    tables.add_row(framed("queues", queues(scene)), framed("workers", workers(scene)))
    parts = [
        headline(scene, width),
        framed("what is happening", story(scene, width), STORY_LINES),
        tables,
        framed("progress", progress(scene, bars)),
    ]
    if jobs > 0:
        parts.append(framed("jobs", latest(scene, jobs)))
    return Group(*parts)


def framed(title: str, content: RenderableType, rows: int | None = None) -> Panel:
    """A part of the screen with its name."""
    height = None if rows is None else rows + 2
    return Panel(content, title=title, title_align="left", border_style=EDGE, height=height)


def bare(*columns: str, note: str | None = None) -> Table:
    """A table without any line."""
    made = table(*columns, note=note)
    made.box = None
    made.padding = (0, 2, 0, 0)
    return made


def headline(scene: Scene, width: int) -> RenderableType:
    """Counts, rate and time."""
    left = Text.from_markup(
        f"[bold]penstock[/] {scene.enqueued:,} enqueued [green]{scene.completed:,} completed[/] "
        f"[yellow]{scene.failed:,} retries[/] [red]{scene.dead} dead[/]"
    )
    bars = max(6, min(30, width - HEADLINE_WORDS))
    rate = f"[green]{sparkline(list(scene.rates)[-bars:])}[/] {scene.rates[-1]:,.0f}/s"
    clock = f"[dim]{min(scene.elapsed, scene.seconds):.0f}/{scene.seconds:.0f} s[/]"
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_row(left, Text.from_markup(f"{rate} {clock}"))
    return grid


def story(scene: Scene, width: int) -> RenderableType:
    """As many of the last lines of the story as fit, the newest last."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", justify="right", no_wrap=True, width=4)
    grid.add_column()
    room = width - STORY_MARGIN
    shown: list[tuple[float, str]] = []
    rows = 0
    for at, sentence in reversed(scene.story):
        rows += math.ceil(len(sentence) / room)
        if rows > STORY_LINES:
            break
        shown.insert(0, (at, sentence))
    for number, (at, sentence) in enumerate(shown, start=1):
        grid.add_row(f"{at:.0f} s", Text(sentence, style="bold" if number == len(shown) else ""))
    return grid


def queues(scene: Scene) -> RenderableType:
    """What stands in each queue."""
    made = bare("QUEUE", "QUEUED#", "RUNNING#", "RETRY#")
    for depth in scene.depths:
        made.add_row(
            plain(depth.queue),
            f"{depth.queued + depth.pending:,}",
            f"{depth.in_progress:,}",
            f"[yellow]{depth.failed}[/]" if depth.failed else "0",
        )
    if not scene.depths:
        made.add_row("[dim]empty[/]", "", "", "")
    for _ in range(QUEUES - max(1, len(scene.depths))):
        made.add_row("", "", "", "")
    return made


def workers(scene: Scene) -> RenderableType:
    """Who is alive."""
    made = bare("WORKER", "PID#", "BUSY#", "DONE#", "BEAT")
    for worker in scene.workers:
        silent = worker.heartbeat_age_ms > 2_000
        beat = ago(scene.now - worker.heartbeat_age_ms, scene.now)
        made.add_row(
            f"[{'red' if silent else 'green'}]{plain(worker.name)}[/]",
            str(worker.pid),
            f"{worker.running}/{worker.concurrency}",
            f"{worker.completed:,}",
            f"[red]{beat}[/]" if silent else beat,
        )
    if not scene.workers:
        made.add_row("[dim]starting[/]", "", "", "", "")
    for _ in range(QUEUES - max(1, len(scene.workers))):
        made.add_row("", "", "", "", "")
    return made


def progress(scene: Scene, bars: int) -> RenderableType:
    """A bar for each job that tells how far it is."""
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True, width=12)
    grid.add_column(width=24)
    grid.add_column(no_wrap=True, width=5, justify="right")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for job in scene.running[:bars]:
        percent = job.progress_percent or 0.0
        grid.add_row(
            plain(job.type),
            ProgressBar(total=100, completed=percent, width=24),
            f"{percent:.0f} %",
            plain(job.progress_message or ""),
        )
    for _ in range(bars - min(bars, len(scene.running))):
        grid.add_row("", "", "", "")
    return grid


def latest(scene: Scene, count: int) -> RenderableType:
    """Jobs in trouble first, then the newest ones."""
    made = bare("ID", "TYPE", "STATUS", "TRIES#", note="NOTE")
    chosen = {job.id: job for job in (*scene.troubled, *scene.latest)}
    for job in list(chosen.values())[:count]:
        made.add_row(
            job.id,
            plain(job.type),
            styled(job.status),
            tries(job, "/"),
            note(job, scene.now),
        )
    return made
