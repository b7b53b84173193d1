"""`penstock torture`."""

from typing import Annotated

import typer

from penstock.cli.output import JsonFlag
from penstock.cli.session import session
from penstock.cli.times import parse_span


def torture(
    ctx: typer.Context,
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs.")] = 10_000,
    kills: Annotated[int, typer.Option(min=0, help="How often to kill or freeze a worker.")] = 200,
    seconds: Annotated[
        str | None, typer.Option("--for", metavar="SPAN", help="End after this long: 90s, 5m.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a run's choices.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Kill and freeze workers over many jobs; exit 1 if one is lost or a stale write got in."""
    from penstock.testing.torture import run_torture

    limit = None if seconds is None else parse_span(seconds, "for") / 1000
    raise typer.Exit(
        run_torture(
            jobs=jobs,
            kills=kills,
            seconds=limit,
            url=session(ctx).url,
            seed=seed,
            as_json=as_json,
        )
    )
