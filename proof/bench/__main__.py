"""`python -m proof.bench`: measure speed, or compare it with other job systems."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, name_list


def bench(
    jobs: Annotated[int, typer.Option(min=100, help="How many jobs to drain.")] = 50_000,
    quick: Annotated[bool, typer.Option("--quick", help="A minute, with rough figures.")] = False,
    peers: Annotated[bool, typer.Option(help="Also measure huey, in a checkout.")] = True,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Measure beside other job systems instead, in a checkout."),
    ] = False,
    only: Annotated[
        list[str] | None,
        name_list(metavar="A,B", help="Compare only these systems.", default="all"),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            writable=True,
            help="Where the files are made.",
            show_default="the temporary directory",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure speed against the raw limit of SQLite and a peer."""
    from proof.bench import run_bench, run_comparison

    if compare:
        raise typer.Exit(
            run_comparison(quick=quick, only=only or (), as_json=as_json, directory=directory)
        )
    raise typer.Exit(
        run_bench(jobs=jobs, quick=quick, peers=peers, as_json=as_json, directory=directory)
    )


if __name__ == "__main__":
    typer.run(bench)
