"""The play: a store, a fleet of workers, a story, and somebody who watches."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from penstock.cli import exits
from penstock.cli.root import Refused
from penstock.demo import jobs
from penstock.demo.screen import Account, Scene, Watcher, account, read_jobs, screen
from penstock.demo.story import Fleet, Story


def summary(out: Console, found: Account) -> None:
    """Counts read from the store, and whether they add up."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="bold")
    grid.add_column()
    grid.add_row(f"{found.enqueued:,}", "jobs enqueued and acknowledged")
    grid.add_row(f"[green]{found.completed:,}[/]", "completed")
    grid.add_row(f"[red]{found.dead:,}[/]", "dead letter, kept for a person to decide")
    grid.add_row(f"[yellow]{found.retried:,}[/]", "needed more than one attempt")
    grid.add_row(f"[cyan]{found.rescued:,}[/]", "rescued from the killed worker and run again")
    if found.unfinished:
        grid.add_row(f"[red]{found.unfinished:,}[/]", "had not ended when the time was over")
    grid.add_row(f"[{'red' if found.lost else 'green'}]{found.lost:,}[/]", "lost")
    verdict = (
        f"[bold green]It adds up: {found.enqueued:,} = {found.completed:,} + {found.dead:,}[/]"
        if found.adds_up
        else "[bold red]It does not add up[/]"
    )
    edge = "green" if found.adds_up else "red"
    out.print(Panel(grid, title=verdict, title_align="left", border_style=edge, expand=False))


def next_steps(out: Console, url: str, *, kept: bool) -> None:
    """Commands to try now."""
    program = program_name()
    if kept:
        out.print("Look around in what is left of it:")
        for command in ("dead groups", "jobs ls --type demo.import", "stats", "doctor"):
            out.print(f"  {program} --url {url} {command}", highlight=False, soft_wrap=True)
    out.print(f"Every command: {program} --help. The first steps in Python: README.md.")


def program_name() -> str:
    """How to call penstock from here."""
    if shutil.which("penstock"):
        return "penstock"
    called = sys.argv[0]
    return os.path.relpath(called) if os.path.basename(called) == "penstock" else "penstock"


PROCESSES = 3
CONCURRENCY = 8
LOOK_SECONDS = 0.2
START_SECONDS = 60.0
SETTLE_SECONDS = 60.0
PLAIN_SECONDS = 2.0


def play(*, url: str | None, seconds: float, plain: bool) -> int:
    """Play it; 0 when the numbers add up."""
    out = Console(file=sys.stdout)
    live = out.is_terminal and not plain
    stage = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    used = url or f"sqlite:///{stage / 'demo.db'}"
    try:
        found = asyncio.run(Play(out, used, stage, seconds, live=live).run())
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    if found is None:
        shutil.rmtree(stage, ignore_errors=True)
        out.print("Stopped; no worker is left behind.")
        return exits.INTERRUPTED
    kept = url is not None or live or not found.adds_up
    if not kept:
        shutil.rmtree(stage, ignore_errors=True)
    summary(out, found)
    next_steps(out, used, kept=kept)
    return exits.OK if found.adds_up else exits.FAILED


class Play:
    """One showing."""

    def __init__(self, out: Console, url: str, stage: Path, seconds: float, *, live: bool) -> None:
        self._out = out
        self._live = live
        self._scene = Scene(seconds)
        self._app = jobs.app
        self._app.settings = self._app.settings.replace(url=url)
        self._fleet = Fleet(
            url, stage / "workers.log", processes=PROCESSES, concurrency=CONCURRENCY
        )
        self._interrupted = asyncio.Event()
        self._up = asyncio.Event()

    async def run(self) -> Account | None:
        """Play to the end; None when somebody stopped it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupted.set)
        async with self._app:
            await self._fleet.start()
            try:
                return await self._until_interrupted()
            finally:
                await self._fleet.stop()

    async def _until_interrupted(self) -> Account | None:
        watcher = Watcher(self._app.store)
        await watcher.begin()
        watching = asyncio.create_task(self._watch(watcher))
        playing = asyncio.create_task(self._act())
        stopped = asyncio.create_task(self._interrupted.wait())
        try:
            await asyncio.wait({watching, playing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
            return playing.result() if playing.done() else None
        finally:
            for task in (playing, stopped, watching):
                task.cancel()
            await asyncio.gather(playing, stopped, watching, return_exceptions=True)
            if self._live:
                # The live screen is gone with its terminal page; the story stays to be read.
                Lines(self._out, self._scene).tell_story()

    async def _act(self) -> Account:
        story = Story(self._app, self._scene)
        await self._until_workers_are_up()
        await story.run()
        await story.settled(SETTLE_SECONDS)
        found = await read_jobs(self._app.store, story.ids)
        self._scene.tell("Every job has ended.")
        await asyncio.sleep(2 * LOOK_SECONDS)
        return account(story.ids, found)

    async def _until_workers_are_up(self) -> None:
        self._scene.tell(f"Starting {PROCESSES} worker processes on one SQLite file.")
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._up.wait()
        except TimeoutError:
            said = self._fleet.failed or "they said nothing"
            raise Refused(f"The workers did not start in {START_SECONDS:.0f} s: {said}") from None

    async def _watch(self, watcher: Watcher) -> None:
        """Keep the scene up to date and show it."""
        if self._live:
            with Live(console=self._out, auto_refresh=False, screen=True) as shown:
                await self._look_on(
                    watcher,
                    lambda: shown.update(screen(self._scene, *self._out.size), refresh=True),
                )
        else:
            await self._look_on(watcher, Lines(self._out, self._scene).show)

    async def _look_on(self, watcher: Watcher, show: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        began: float | None = None
        while True:
            if self._fleet.failed is not None:
                raise Refused(f"The workers ended: {self._fleet.failed}")
            if began is None and len(self._scene.workers) >= PROCESSES:
                began = loop.time()
                self._up.set()
            self._scene.elapsed = 0.0 if began is None else loop.time() - began
            await watcher.look(self._scene)
            show()
            await asyncio.sleep(LOOK_SECONDS)


class Lines:
    """The play without a terminal: the story, and a line of figures now and then."""

    def __init__(self, out: Console, scene: Scene) -> None:
        self._out = out
        self._scene = scene
        self._told = 0
        self._next = PLAIN_SECONDS

    def show(self) -> None:
        """Print what is new."""
        scene = self._scene
        self.tell_story()
        if scene.elapsed >= self._next:
            self._next = scene.elapsed + PLAIN_SECONDS
            waiting = sum(d.queued + d.pending + d.failed for d in scene.depths)
            running = sum(d.in_progress for d in scene.depths)
            self._print(
                scene.elapsed,
                f"{scene.enqueued:,} enqueued, {scene.completed:,} completed, {running} running, "
                f"{waiting:,} waiting, {scene.dead} dead, {len(scene.workers)} workers",
            )

    def tell_story(self) -> None:
        """Print the lines of the story that were not told yet."""
        for at, sentence in self._scene.story[self._told :]:
            self._print(at, sentence)
        self._told = len(self._scene.story)

    def _print(self, at: float, sentence: str) -> None:
        self._out.print(f"{at:5.1f} s  {sentence}", highlight=False, markup=False, soft_wrap=True)
