"""The result of a comparison: as tables, as JSON, and as a part of the page in the repository."""

from collections.abc import Iterator

import msgspec
from rich.console import Console
from rich.table import Table

from proof.bench.figures import Figure
from proof.bench.peers.table import STORES, Row
from proof.bench.report import (
    FIGURE_COLUMNS,
    cells,
    facts_table,
    how_often,
    line,
    number,
    spread_table,
)

COLUMNS = (
    "system",
    "at",
    "bulk enqueue",
    "single, async",
    "single, sync",
    "drain",
    "drain by two",
    "pickup p50",
    "pickup p95",
)

INTRODUCTION = """Made by `{command}`; run it to replace this part. Every figure comes from one run
in which all systems take turns, {rounds} each, on the same servers: PostgreSQL with its
default settings (`fsync` and `synchronous_commit` on) and Valkey with an append-only file synced
every second. A rate is the median of its rounds, in jobs per second; a ratio is the median of the
rounds' own ratios; pickups are in milliseconds.

Jobs are no-ops with a payload of 100 bytes. Each system enqueues in its own best bulk way, or
one at a time where it has none. Single enqueues follow each other, each begun when the one before
is acknowledged, by a coroutine (async) and by a plain function (sync), as far as a system offers
them; penstock is judged in both against the best of either. A system drains with one worker process
at the best of the settings that were tried, and with two. The clock runs from the moment when its
workers, their imports done, begin to the start of the last handler; what a system settles after
that costs it nothing. Pickup is the
time from the call of enqueue in one process to the start of the handler in another that was idle.

The raw limit is `proof/bench/limits/`:
penstock's rows and their executions moved by bare statements from one client, each completing 100
jobs and claiming the next 100, with nothing but the fence checked.

The peers' versions are those of `requirements/bench/` and `benchmarks/peers/bullmq_node/`, and
their code is in `benchmarks/peers/`. huey, and taskiq on its list, take a job off the queue before
it runs and lose it when their worker dies. FlexiQ on SQLite commits with `synchronous=NORMAL` and
loses what it acknowledged last when the power goes; penstock and huey (by SQLite's default) commit
with `synchronous=FULL` into a WAL, wait for the disk each time, and are judged beside each other.
arq polls, here every 10 ms instead of its half second.
"""


class ComparisonOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """All there is to tell about a comparison."""

    command: str
    rounds: int
    machine: dict[str, str]
    rows: list[Row]
    verdicts: list[Figure]
    readings: dict[str, dict[str, float]]
    notes: list[str]


def show_comparison(outcome: ComparisonOutcome, console: Console) -> None:
    """Print the tables."""
    table = Table(title="make compare", caption="\n".join(_notes(outcome)))
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:2] else "right")
    for store, rows in _by_store(outcome):
        table.add_section()
        table.add_row(f"[bold]{store}[/bold]")
        for row in rows:
            table.add_row(*_cells(row))
    console.print(table)
    judged = Table(title="against the targets")
    for column in FIGURE_COLUMNS:
        judged.add_column(column)
    for figure in outcome.verdicts:
        met = "[green]yes[/green]" if figure.met else "[red]no[/red]"
        judged.add_row(f"{figure.topic}: {figure.name}", *cells(figure), met)
    console.print(judged)


def comparison_as_json(outcome: ComparisonOutcome) -> str:
    """One JSON document."""
    return msgspec.json.format(msgspec.json.encode(outcome), indent=2).decode()


def comparison_as_markdown(outcome: ComparisonOutcome) -> str:
    """The part of `benchmarks/RESULTS.md` below its heading."""
    lines = [INTRODUCTION.format(command=outcome.command, rounds=how_often(outcome.rounds))]
    for store, rows in _by_store(outcome):
        lines += [f"## On {store}", "", line(COLUMNS), line(["---"] * len(COLUMNS))]
        lines += [*(line(_cells(row)) for row in rows), ""]
    lines += ["## Against the targets", ""]
    lines += [line(FIGURE_COLUMNS), line(["---"] * len(FIGURE_COLUMNS))]
    for figure in outcome.verdicts:
        met = "yes" if figure.met else "**no**"
        lines.append(line([f"{figure.topic}: {figure.name}", *cells(figure), met]))
    lines += ["", *(f"- {note}" for note in _notes(outcome))]
    lines += ["", "## Machine of the comparison", "", *facts_table(outcome.machine)]
    lines += ["", "## Spread of the rounds", "", *spread_table(outcome.readings)]
    return "\n".join(lines) + "\n"


def _by_store(outcome: ComparisonOutcome) -> Iterator[tuple[str, list[Row]]]:
    for store in STORES:
        rows = [row for row in outcome.rows if row.store == store]
        if rows:
            yield store, rows


def _notes(outcome: ComparisonOutcome) -> list[str]:
    failed = [
        f"{row.name} on {row.store} could not be measured in full: {row.failure}"
        for row in outcome.rows
        if row.failure
    ]
    return [*failed, *outcome.notes]


def _cells(row: Row) -> list[str]:
    figures = (
        row.bulk,
        row.single,
        row.single_plainly,
        row.drain,
        row.drain_by_two,
        row.pickup_p50,
        row.pickup_p95,
    )
    shown = ["" if figure is None else number(figure) for figure in figures]
    if row.failure and row.drain is None:
        shown[0] = "failed, see below"
    return [f"{row.name} {row.version}".strip(), row.setting, *shown]
