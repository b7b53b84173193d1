"""`penstock torture`."""

from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, parse_span
from penstock.cli.session import session


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
    """Kill and freeze workers over many jobs; exit 1 if one is lost or a stale write got in.

    In a new SQLite file, or in the store that --url names, of which only workers are harmed.
    """
    from penstock.logs import configure_logs
    from penstock.torture import run_torture
    from penstock.torture.ground import known_store, new_file

    chosen = session(ctx)
    configure_logs(level="error")  # that a server is away is no news here
    limit = None if seconds is None else parse_span(seconds, "for") / 1000
    raise typer.Exit(
        run_torture(
            jobs=jobs,
            kills=kills,
            seconds=limit,
            ground=known_store(chosen.url, chosen.dispatch) if chosen.url else new_file,
            seed=seed,
            as_json=as_json,
        )
    )
