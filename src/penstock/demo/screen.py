"""The live screen: what the store says at one moment, and how that adds up."""

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.job_view import note
from penstock.cli.output import plain, sparkline, styled, table
from penstock.model.failure import attempt_of
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.model.wording import ago
from penstock.store.contract import JobFilter, QueueDepth, Store, WorkerInfo

PAGE = 500
LATEST = 10
TROUBLED = 5
WHOLE_PLAY_MS = 900_000


@dataclass
class Scene:
    """Everything the screen shows."""

    seconds: float
    elapsed: float = 0.0
    enqueued: int = 0
    now: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0
    depths: list[QueueDepth] = field(default_factory=list)
    workers: list[WorkerInfo] = field(default_factory=list)
    troubled: list[Job] = field(default_factory=list)
    latest: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    rates: deque[float] = field(default_factory=lambda: deque([0.0], maxlen=60))
    story: list[tuple[float, str]] = field(default_factory=list)

    def tell(self, sentence: str) -> None:
        """Add a line to the story."""
        self.story.append((self.elapsed, sentence))


class Watcher:
    """Reads the scene from the store; what was there before the play does not count."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before = (0, 0, 0)
        self._last: tuple[float, int] | None = None

    async def begin(self) -> None:
        """Remember the figures before the play."""
        self._before = await self._figures()

    async def look(self, scene: Scene) -> None:
        """Bring a scene up to date."""
        store = self._store
        completed, failed, dead = await self._figures()
        scene.completed = completed - self._before[0]
        scene.failed = failed - self._before[1]
        scene.dead = dead - self._before[2]
        scene.depths = await store.metrics.depths()
        scene.workers = sorted(await store.workers.list(), key=lambda worker: worker.name)
        scene.latest = await store.reader.find(JobFilter(limit=LATEST))
        running = await store.reader.find(JobFilter(statuses=(Status.IN_PROGRESS,), limit=100))
        scene.running = [job for job in running if job.progress_percent is not None]
        scene.troubled = [
            *await store.reader.find(JobFilter(statuses=(Status.DEAD_LETTER,), limit=1)),
            *await store.reader.find(JobFilter(statuses=(Status.FAILED,), limit=TROUBLED)),
            *(job for job in running if job.rescues),
        ][:TROUBLED]
        scene.now = store.clock.now()
        self._rate(scene)

    async def _figures(self) -> tuple[int, int, int]:
        total = (await self._store.metrics.window(WHOLE_PLAY_MS))[0]
        return total.completed, total.failed, total.dead

    def _rate(self, scene: Scene) -> None:
        if self._last is None:
            self._last = (scene.elapsed, scene.completed)
            return
        elapsed = scene.elapsed - self._last[0]
        if elapsed >= 0.5:
            scene.rates.append(max(0.0, (scene.completed - self._last[1]) / elapsed))
            self._last = (scene.elapsed, scene.completed)


@dataclass(frozen=True)
class Account:
    """Where every job that was acknowledged has ended."""

    enqueued: int
    completed: int
    dead: int
    unfinished: int
    lost: int
    retried: int
    rescued: int
    executions: int

    @property
    def adds_up(self) -> bool:
        """Nothing lost, nothing left, every job in one of the two ends."""
        whole = self.completed + self.dead == self.enqueued
        return whole and self.lost == 0 and self.unfinished == 0


async def read_jobs(store: Store, ids: Sequence[str]) -> list[Job]:
    """The jobs of the play, as the store has them."""
    found: list[Job] = []
    for start in range(0, len(ids), PAGE):
        found += await store.reader.get(ids[start : start + PAGE])
    return found


def account(ids: Sequence[str], jobs: Sequence[Job]) -> Account:
    """Count what became of the jobs that were acknowledged."""
    states = Counter(job.status for job in jobs)
    unfinished = sum(not job.status.terminal for job in jobs)
    return Account(
        enqueued=len(ids),
        completed=states[Status.COMPLETED],
        dead=states[Status.DEAD_LETTER],
        unfinished=unfinished,
        lost=len(set(ids)) - len(jobs),
        retried=sum(job.attempts > 1 for job in jobs),
        rescued=sum(job.rescues > 0 for job in jobs),
        executions=sum(job.fence for job in jobs),
    )


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
    made = bare("WORKER", "PID#", "BUSY#", "COMPLETED#", "LAST SEEN")
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
    made = bare("ID", "TYPE", "STATUS", "ATTEMPTS#", note="NOTE")
    chosen = {job.id: job for job in (*scene.troubled, *scene.latest)}
    for job in list(chosen.values())[:count]:
        made.add_row(
            job.id,
            plain(job.type),
            styled(job.status),
            str(attempt_of(job)),
            note(job, scene.now),
        )
    return made
