"""`make bench`: everything measured in one run."""

import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

from proof.bench.before import Before
from proof.bench.figures import figures
from proof.bench.machine import busy_notes, facts
from proof.bench.page import find_checkout, write_figures
from proof.bench.peer import Huey
from proof.bench.peers.environment import PeerMissing
from proof.bench.processes import ProbeFailed
from proof.bench.progress import advance
from proof.bench.readings import Readings
from proof.bench.report import Outcome, as_markdown, show
from proof.bench.report import as_json as to_json
from proof.bench.scale import Scale
from proof.bench.stages.claims import claims
from proof.bench.stages.drain import drain, memory
from proof.bench.stages.engine import explain, flows, held_drain, schedules
from proof.bench.stages.enqueue import bulk_enqueue, single_enqueue
from proof.bench.stages.presence import idle, import_time, pickup
from proof.bench.stages.server import bulk_posts, dashboard, posts
from proof.bench.stages.stage import Bench, Stage

QUICK_JOBS = 2_000


def run_bench(
    *,
    jobs: int = 50_000,
    quick: bool = False,
    peers: bool = True,
    as_json: bool = False,
    directory: Path | None = None,
    console: Console | None = None,
) -> int:
    """Measure, show, and in a full run from a checkout rewrite `benchmarks/RESULTS.md`.

    The database files are made in a temporary directory inside `directory`. The exit code is 0
    when everything could be measured; the figures say which targets were missed.
    """
    console = console or Console()
    aside = Console(stderr=True)
    scale = Scale.quick(min(jobs, QUICK_JOBS)) if quick else Scale.full(jobs)
    checkout = find_checkout()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=directory) as scratch:
        bench = Bench(scale, Path(scratch), Readings())
        machine = facts(Path(scratch))
        try:
            notes = _measure(bench, checkout if peers else None, aside)
        except (PeerMissing, ProbeFailed, subprocess.SubprocessError) as error:
            aside.print(f"[red]{error}[/red]")
            aside.print(getattr(error, "output", None) or "", markup=False)
            return 1
    notes += busy_notes(machine)
    outcome = Outcome(
        command=_command(jobs, quick),
        machine=machine,
        scale=scale,
        figures=figures(bench.readings, scale),
        readings=bench.readings.spread(),
        notes=notes,
    )
    if as_json:
        console.print(to_json(outcome), markup=False, highlight=False, soft_wrap=True)
    else:
        show(outcome, console)
    if not quick and checkout is not None:
        write_figures(checkout / "benchmarks" / "RESULTS.md", as_markdown(outcome))
    return 0


def _measure(bench: Bench, checkout: Path | None, aside: Console) -> list[str]:
    """Run the stages; notes that belong under the table."""
    huey = Huey(checkout) if checkout else None
    before = Before.of(checkout, bench.directory) if checkout else None
    installing = [Stage("peer's environment", [huey.install])] if huey else []
    advance([*installing, *_stages(bench, huey, before)], aside)
    if huey is None:
        return ["huey was not measured (peers are off, or this is no checkout of penstock)."]
    notes = [f"huey ran with threads: {huey.best_threads}, the best of {huey.THREADS}."]
    if before is None:
        notes.append("The version before was not measured: this checkout has no history of it.")
    return notes


def _stages(bench: Bench, huey: Huey | None, before: Before | None) -> list[Stage]:
    return [
        import_time(bench),
        bulk_enqueue(bench),
        single_enqueue(bench),
        pickup(bench),
        idle(bench),
        memory(bench),
        drain(bench, huey, before),
        held_drain(bench),
        flows(bench),
        schedules(bench),
        explain(bench),
        posts(bench),
        bulk_posts(bench),
        dashboard(bench),
        claims(bench),
    ]


def _command(jobs: int, quick: bool) -> str:
    if quick:
        return "make bench ARGS=--quick"
    return "make bench" if jobs == 50_000 else f'make bench ARGS="--jobs {jobs}"'
