"""`make compare`: penstock and its peers measured in one run."""

import tempfile
from collections.abc import Collection
from pathlib import Path

from rich.console import Console

from penstock.model.errors import InvalidOption
from proof.bench.machine import busy_notes, facts
from proof.bench.page import COMPARISON, find_checkout, write_part
from proof.bench.peers.environment import Environments
from proof.bench.peers.report import (
    ComparisonOutcome,
    comparison_as_json,
    comparison_as_markdown,
    show_comparison,
)
from proof.bench.peers.stores import Stores
from proof.bench.peers.system import OURS, PEERS, System
from proof.bench.peers.table import Row, limit_row, system_row, verdicts
from proof.bench.progress import advance
from proof.bench.readings import Readings
from proof.bench.scale import Scale
from proof.bench.stages.comparison import LIMITS, Comparison
from proof.bench.stages.stage import Bench

JOBS = 50_000
QUICK_JOBS = 2_000


def run_comparison(
    *,
    quick: bool = False,
    only: Collection[str] = (),
    as_json: bool = False,
    directory: Path | None = None,
    console: Console | None = None,
) -> int:
    """Measure, show, and in a full run rewrite the comparison in `benchmarks/RESULTS.md`.

    `only` names the systems to measure, if not all.
    """
    console = console or Console()
    aside = Console(stderr=True)
    checkout = find_checkout()
    if checkout is None:
        aside.print("[red]The peers are measured from a checkout of penstock; this is none.[/red]")
        return 1
    scale = Scale.quick(QUICK_JOBS) if quick else Scale.full(JOBS)
    systems = _named(only)
    environments = Environments(checkout)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=directory) as scratch,
        Stores(Path(scratch)) as stores,
    ):
        machine = {**facts(Path(scratch)), **stores.versions()}
        bench = Bench(scale, Path(scratch), Readings())
        comparison = Comparison(bench, environments, stores)
        advance(comparison.stages(systems), aside)
    readings = bench.readings
    outcome = ComparisonOutcome(
        command="make compare",
        rounds=scale.rounds,
        machine=machine,
        rows=_rows(readings, systems, comparison, environments),
        verdicts=list(
            verdicts(
                readings, {system.store: system for system in OURS if system in systems}, PEERS
            )
        ),
        readings=readings.spread(),
        notes=busy_notes(machine),
    )
    if as_json:
        text = comparison_as_json(outcome)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        show_comparison(outcome, console)
    if not quick and not only:
        page = checkout / "benchmarks" / "RESULTS.md"
        write_part(page, COMPARISON, comparison_as_markdown(outcome))
    return 0


def _named(only: Collection[str]) -> list[System]:
    systems = [*OURS, *PEERS]
    known = {system.name for system in systems}
    names = set(only) or known
    if not names <= known:
        raise InvalidOption("only", ",".join(only), f"names out of {', '.join(sorted(known))}")
    return [system for system in systems if system.name in names]


def _rows(
    readings: Readings,
    systems: list[System],
    comparison: Comparison,
    environments: Environments,
) -> list[Row]:
    limits = [limit_row(readings, store) for store in LIMITS]
    return limits + [
        system_row(
            readings,
            system,
            version=environments.version(system),
            setting=comparison.setting(system),
            failure=comparison.failures.get(system.key),
        )
        for system in systems
    ]
