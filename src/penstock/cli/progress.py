"""A bar for what takes a while, on standard error and only where somebody watches."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    what: str, total: int | None = None
) -> Generator[Callable[[int, int | None], None], None, None]:
    """`with progress_bar("Releasing") as show: show(done, of_how_many)`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    out = Console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)
