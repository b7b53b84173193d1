"""The terminal: values read, tables for people, one JSON document for scripts."""

import json
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.root import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.syntax import Syntax
    from rich.table import Table

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_TYPED = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_span(text: str, option: str) -> int:
    """Milliseconds of `90`, `90s`, `15m`, `1h` or `7d`; a bare number is seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a span such as 90s, 15m or 1h."
        )
    return int(float(found[1]) * _TYPED[found[2] or "s"])


def parse_time(text: str | None, option: str, zone: str) -> "datetime | None":
    """An ISO-8601 time; one without an offset is in the zone."""
    if text is None:
        return None
    from datetime import datetime

    from penstock.model.cron import find_zone

    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a time such as 2026-11-15T03:28."
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=find_zone(zone))


def moment(text: str | None, option: str) -> int | None:
    """The same in milliseconds, as stores keep it; without an offset it is UTC."""
    from penstock.model.clock import milliseconds

    found = parse_time(text, option, "UTC")
    return None if found is None else milliseconds(found)


def name_list(*names: str, metavar: str, help: str, default: str | None = None) -> Any:  # noqa: A002
    """An option that takes names separated by commas, and may be repeated."""
    return typer.Option(
        *names,
        metavar=metavar,
        help=f"{help} Separated by commas, or repeated.",
        show_default=default or False,
        callback=_names,
    )


def _names(param: typer.CallbackParam, typed: list[str] | None) -> list[str] | None:
    if not typed:
        return None
    names = [name for text in typed for name in map(str.strip, text.split(",")) if name]
    if not names:
        raise Refused(
            f"Option {param.opts[0].lstrip('-')!r} is {','.join(typed)!r}, "
            "but it must name at least one, as in a,b."
        )
    return names


YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(question: str, *, yes: bool) -> None:
    """Go on only when the person at the terminal says so, or `--yes` did."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{question} There is no terminal to ask on; confirm with --yes.")
    typer.confirm(question, abort=True)


@contextmanager
def progress_bar(
    what: str, total: int | None = None
) -> Generator[Callable[[int, int | None], None], None, None]:
    """`with progress_bar("Releasing") as show: show(done, of_how_many)`."""
    with progress_bars() as show:
        show(what, 0, total)
        yield lambda done, of: show(what, done, of)


@contextmanager
def progress_bars() -> Generator[Callable[[str, int, int | None], None], None, None]:
    """The same with several: `with progress_bars() as show: show("jobs", done, of_how_many)`.

    Where there is no terminal, a line now and then says how far it is.
    """
    if not sys.stderr.isatty():
        yield _progress_lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    out = Console(stderr=True)
    with Progress(*columns, console=out, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, of: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=of)
            bar.update(tasks[what], completed=done, total=of)

        yield show


LINE_SECONDS = 5.0


def _progress_lines() -> Callable[[str, int, int | None], None]:
    """Say every few seconds how far something is; of what is quick, nothing."""
    told_at = monotonic()

    def show(what: str, done: int, of: int | None) -> None:
        nonlocal told_at
        if monotonic() - told_at >= LINE_SECONDS:
            told_at = monotonic()
            typer.echo(f"{what}: {done:,}" + ("" if of is None else f" of {of:,}"), err=True)

    return show


JsonFlag = Annotated[bool, typer.Option("--json", help="Write one JSON document.")]

STYLES = {
    "firing": "red",
    "broken": "red",
    "resolved": "green",
    "ok": "green",
    "quiet": "bright_black",
    "pending": "default",
    "queued": "cyan",
    "in_progress": "bright_blue",
    "running": "bright_blue",
    "failed": "yellow",
    "paused": "magenta",
    "completed": "green",
    "cancelled": "bright_black",
    "dead_letter": "red",
    "dead": "red",
    "lost": "red",
}
SPARKS = "▁▂▃▄▅▆▇█"
UNSURE = re.compile(r"[^\n -~]")


def console() -> "Console":
    """Standard output; as wide as the terminal, or 120 columns when there is none."""
    import shutil

    from rich.console import Console

    width = shutil.get_terminal_size((120, 50)).columns
    return Console(file=sys.stdout, width=width, highlight=False)


def table(*columns: str, note: str | None = None) -> "Table":
    """A table without lines; names that end in `#` are numbers, `note` takes what room is left."""
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
        expand=note is not None,
    )
    for name in columns:
        right = name.endswith("#")
        made.add_column(
            name.rstrip("#"),
            no_wrap=True,
            justify="right" if right else "left",
            overflow="ellipsis",
        )
    if note is not None:
        made.add_column(note, no_wrap=True, overflow="ellipsis", ratio=1)
    return made


class Fitted:
    """A table that leaves out columns it can spare, the first named first, for want of room."""

    NOTE_WIDTH = 24  # what a note should have at least

    def __init__(self, made: "Table", *spare: str) -> None:
        self.table = made
        self.spare = spare

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        for name in self.spare:
            if self._wanted() <= options.max_width:
                break
            left = (column for column in self.table.columns if column.header != name)
            self.table.columns = [replace(column, _index=n) for n, column in enumerate(left)]
        yield self.table

    def _wanted(self) -> int:
        """How wide it would like to be; columns stand two apart."""
        from rich.text import Text

        widths = []
        for column in self.table.columns:
            texts = (Text.from_markup(str(cell)) for cell in (column.header, *column.cells))
            width = max(text.cell_len for text in texts)
            widths.append(width if column.ratio is None else min(width, self.NOTE_WIDTH))
        return sum(widths) + 2 * (len(widths) - 1)


def styled(status: str) -> str:
    """A status in its colour, as markup."""
    return f"[{STYLES.get(status, 'default')}]{status}[/]"


def plain(value: object) -> str:
    """Text from outside, on one line, with nothing in it read as markup or as a command."""
    from rich.markup import escape

    words = " ".join(str(value).split())
    return escape("".join(letter for letter in words if letter.isprintable()))


def lines(text: str) -> str:
    """Text from outside on lines of its own, with nothing in it that commands a terminal."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


def json_text(document: Any, indent: int | None = 2) -> str:
    """JSON that people can read, with what could command a terminal escaped."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    return UNSURE.sub(lambda found: _seen(found[0]), text)


def highlighted(document: Any) -> "Syntax":
    """The same in colours."""
    from rich.syntax import Syntax

    text = json_text(document)
    return Syntax(text, "json", theme="ansi_dark", background_color="default", word_wrap=True)


def sparkline(values: list[float]) -> str:
    """Numbers as a row of bars."""
    top = max(values, default=0) or 1
    return "".join(SPARKS[min(7, int(value / top * 7.999))] for value in values)


def bar(part: float, whole: float, cells: int = 10) -> str:
    """A part of a whole as a bar, as markup; red when nothing is left."""
    filled = min(cells, max(int(part > 0), round(cells * part / max(whole, 1))))
    colour = "red" if part >= whole else "green"
    return f"[{colour}]{'█' * filled}[/][bright_black]{'░' * (cells - filled)}[/]"


def write_json(document: Any) -> None:
    """Write one JSON document."""
    typer.echo(json_text(document))


def _seen(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
