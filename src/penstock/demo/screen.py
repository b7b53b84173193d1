"""The live screen."""

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.job_view import note
from penstock.cli.output import plain, sparkline, styled, table
from penstock.cli.times import ago
from penstock.demo.scene import Scene

STORY_LINES = 7
BARS = 6
EDGE = "bright_black"


def screen(scene: Scene) -> RenderableType:
    """The whole screen for one moment."""
    return Group(
        headline(scene),
        Panel(story(scene), title="what is happening", border_style=EDGE, title_align="left"),
        Columns(
            [
                Panel(queues(scene), title="queues", border_style=EDGE, title_align="left"),
                Panel(workers(scene), title="workers", border_style=EDGE, title_align="left"),
            ],
            expand=True,
        ),
        Panel(progress(scene), title="progress", border_style=EDGE, title_align="left"),
        Panel(latest(scene), title="latest jobs", border_style=EDGE, title_align="left"),
    )


def headline(scene: Scene) -> RenderableType:
    """Counts, rate and time."""
    left = Text.from_markup(
        f"[bold]penstock[/]  {scene.enqueued:,} enqueued  [green]{scene.completed:,} completed[/]  "
        f"[yellow]{scene.failed:,} failed attempts[/]  [red]{scene.dead} dead[/]"
    )
    rate = f"[green]{sparkline(list(scene.rates)[-20:])}[/] {scene.rates[-1]:,.0f}/s"
    clock = f"[dim]{min(scene.elapsed, scene.seconds):.0f}/{scene.seconds:.0f} s[/]"
    grid = Table.grid(expand=True)
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_row(left, Text.from_markup(f"{rate}  {clock}"))
    return grid


def story(scene: Scene) -> RenderableType:
    """The last few lines of the story, the newest last."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", justify="right", no_wrap=True)
    grid.add_column()
    shown = scene.story[-STORY_LINES:]
    for number, (at, sentence) in enumerate(shown, start=1):
        style = "bold" if number == len(shown) else ""
        grid.add_row(f"{at:.0f} s", Text(sentence, style=style))
    return grid


def queues(scene: Scene) -> RenderableType:
    """What stands in each queue."""
    made = table("QUEUE", "QUEUED#", "RUNNING#", "RETRY#")
    made.box = None
    for depth in scene.depths:
        made.add_row(
            plain(depth.queue),
            f"{depth.queued + depth.pending:,}",
            f"{depth.in_progress:,}",
            f"[yellow]{depth.failed}[/]" if depth.failed else "0",
        )
    if not scene.depths:
        made.add_row("[dim]empty[/]", "", "", "")
    return made


def workers(scene: Scene) -> RenderableType:
    """Who is alive."""
    made = table("WORKER", "PID#", "BUSY#", "DONE#", "BEAT")
    made.box = None
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
    return made


def progress(scene: Scene) -> RenderableType:
    """A bar for each job that tells how far it is."""
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True, width=12)
    grid.add_column(width=24)
    grid.add_column(no_wrap=True, width=5, justify="right")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for job in scene.running[:BARS]:
        percent = job.progress_percent or 0.0
        grid.add_row(
            plain(job.type),
            ProgressBar(total=100, completed=percent, width=24),
            f"{percent:.0f} %",
            plain(job.progress_message or ""),
        )
    for _ in range(BARS - min(BARS, len(scene.running))):
        grid.add_row("", "", "", "")
    return grid


def latest(scene: Scene) -> RenderableType:
    """The newest jobs."""
    made = table("ID", "TYPE", "STATUS", "TRIES#", note="NOTE")
    made.box = None
    for job in scene.latest:
        made.add_row(
            job.id,
            plain(job.type),
            styled(job.status),
            f"{job.attempts}/{job.max_retries + 1}",
            note(job, scene.now),
        )
    return made
