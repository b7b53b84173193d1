"""Progress of a run, shown beside its result."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from proof.bench.stages.stage import Stage


def advance(stages: Sequence[Stage], console: Console) -> None:
    """Do every step of the stages, with a bar for each stage."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        for stage in stages:
            for step in progress.track(stage.steps, description=stage.title):
                step()
