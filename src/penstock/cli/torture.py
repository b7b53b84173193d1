"""`penstock torture`."""

from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, parse_span
from penstock.cli.root import Refused
from penstock.cli.session import session

KINDS = ("sqlite", "postgres", "redis", "postgres+redis")


def torture(
    ctx: typer.Context,
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs.")] = 10_000,
    kills: Annotated[int, typer.Option(min=0, help="How often to kill or freeze a worker.")] = 200,
    seconds: Annotated[
        str | None, typer.Option("--for", metavar="SPAN", help="End after this long: 90s, 5m.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Make a new store: sqlite, postgres, redis or postgres+redis, with its servers.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a run's choices.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Kill and freeze workers over many jobs; exit 1 if one is lost or a stale write got in.

    A server that it starts itself is crashed, too; to one that --url names nothing is done.
    """
    from penstock.logs import configure_logs
    from penstock.testing.torture import run_torture

    chosen = session(ctx)
    configure_logs(level="error")  # that a server is away is no news here
    limit = None if seconds is None else parse_span(seconds, "for") / 1000
    raise typer.Exit(
        run_torture(
            jobs=jobs,
            kills=kills,
            seconds=limit,
            store=_kind(store, chosen.url),
            url=chosen.url,
            dispatch=(chosen.dispatch or None) if chosen.url else None,
            seed=seed,
            as_json=as_json,
        )
    )


def _kind(store: str | None, url: str | None) -> str:
    if store is not None and store not in KINDS:
        raise Refused(f"--store {store} is not one of {', '.join(KINDS)}.")
    if store is not None and url is not None:
        raise Refused("--store makes a new store and --url names one; leave one of them out.")
    return store or KINDS[0]
