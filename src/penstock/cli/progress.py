"""A bar for what takes a while, on standard error and only where somebody watches."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


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
    """The same with several: `with progress_bars() as show: show("jobs", done, of_how_many)`."""
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
    with Progress(*columns, console=out, transient=True, disable=not sys.stderr.isatty()) as bar:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, of: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=of)
            bar.update(tasks[what], completed=done, total=of)

        yield show
