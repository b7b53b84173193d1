"""The result of a run: as a table, as JSON, and as the page kept in the repository."""

from collections.abc import Sequence
from typing import Any

import msgspec
import structlog
from rich.console import Console
from rich.table import Table

from proof.bench.figures import Figure
from proof.bench.scale import Scale

FIGURE_COLUMNS = ("", "measured", "against", "ratio", "target", "met")

INTRODUCTION = """# Benchmark results

Made by `{command}`; run it to replace this page. Every figure comes from one run on one machine.
What is compared takes turns, {repetitions} each, in fresh processes; a rate is the median
of its repetitions, and a ratio the median of the repetitions' own ratios. Single enqueues and bare
transactions alternate call by call in one process. A ratio better than the bare statements allow
gets no verdict.

The **raw limit** is `proof/bench/limits/sqlite.py`: the same rows under the same schema
and indexes with `synchronous=FULL`, inserted in batches of 100, and claimed and completed with
their execution rows, each transaction completing 100 and claiming the next 100. Its rows are built
before the clock starts; it has no engine, no handlers, no counters and nobody to wake.

Jobs are no-ops (`async def`) with a payload of 100 bytes. Drains are by one worker in one process,
its start and shutdown included. Penstock always waits for the disk; huey is measured at the best of
1, 4 and 8 threads with its default, which waits for the disk too, and again with `fsync=False`.

The server runs in a process of its own and is asked on loopback, by callers that say who they are.
Single enqueues arrive at a steady rate, whether or not those before are answered, and take from
when they were due until they are answered.
"""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All there is to tell about a run."""

    command: str
    machine: dict[str, str]
    scale: Scale
    figures: list[Figure]
    readings: dict[str, dict[str, float]]
    notes: list[str]


def show(outcome: Outcome, console: Console) -> None:
    """Print the table."""
    table = Table(title="make bench", caption=_caption(outcome), caption_justify="left")
    for column in FIGURE_COLUMNS:
        table.add_column(column, justify="right" if column in ("measured", "ratio") else "left")
    topic = ""
    for figure in outcome.figures:
        if figure.topic != topic:
            topic = figure.topic
            table.add_section()
            table.add_row(f"[bold]{topic}[/bold]")
        met = {True: "[green]yes[/green]", False: "[red]no[/red]", None: figure.doubt or ""}
        table.add_row(f"  {figure.name}", *cells(figure), met[figure.met])
    console.print(table)


def as_json(outcome: Outcome) -> str:
    """One JSON document."""
    return msgspec.json.format(msgspec.json.encode(outcome), indent=2).decode()


def as_markdown(outcome: Outcome) -> str:
    """The page for `benchmarks/RESULTS.md`."""
    often = how_often(outcome.scale.repetitions)
    lines = [INTRODUCTION.format(command=outcome.command, repetitions=often)]
    lines += ["## Figures", "", line(FIGURE_COLUMNS), line(["---"] * len(FIGURE_COLUMNS))]
    for figure in outcome.figures:
        met = {True: "yes", False: "**no**", None: figure.doubt or ""}
        lines.append(line([f"{figure.topic}: {figure.name}", *cells(figure), met[figure.met]]))
    lines += ["", *(f"- {note}" for note in outcome.notes)]
    lines += ["", "## Machine", "", *facts_table(outcome.machine)]
    lines += ["", "## Spread of the repetitions", "", *spread_table(outcome.readings)]
    return "\n".join(lines) + "\n"


def print_figures_only() -> None:
    """Keep what workers log out of the figures, unless it is an error."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))


def facts_table(machine: dict[str, str]) -> list[str]:
    """The lines of a table of facts about the machine."""
    return [
        line(["fact", "value"]),
        line(["---", "---"]),
        *(line(pair) for pair in machine.items()),
    ]


def spread_table(readings: dict[str, dict[str, float]]) -> list[str]:
    """The lines of a table of readings."""
    lines = [line(["reading", "count", "smallest", "median", "largest"]), line(["---"] * 5)]
    for name, spread in readings.items():
        numbers = [number(spread[key]) for key in ("min", "median", "max")]
        lines.append(line([name, f"{spread['count']:,.0f}", *numbers]))
    return lines


def cells(figure: Figure) -> list[str]:
    """The columns between a figure's name and its verdict."""
    against = ""
    if figure.reference is not None:
        against = f"{number(figure.reference)} {figure.reference_name}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return [f"{number(figure.measured)} {figure.unit}", against, ratio, figure.target or ""]


def _caption(outcome: Outcome) -> str:
    facts = [f"{name}: {value}" for name, value in outcome.machine.items()]
    return "\n".join([*outcome.notes, "; ".join(facts)])


def line(values: Sequence[Any]) -> str:
    """One line of a table."""
    return f"| {' | '.join(str(value) for value in values)} |"


def number(value: float) -> str:
    """A number with as many digits as mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def how_often(count: int) -> str:
    """Once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
