"""The command `penstock top`; what it runs is loaded when it is called."""

import sys
from typing import Annotated

import typer

from penstock.cli.output import JsonFlag, console, write_json
from penstock.cli.session import asked, operate, place_of, run, session


def top(
    ctx: typer.Context,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds from one look to the next.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print one frame, as it does without a terminal.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Watch queues, workers, running jobs and failures live, and act on them with a key."""
    from penstock.cli.top.run import Top
    from penstock.cli.top.state import look
    from penstock.cli.top.view import printed

    url = session(ctx).settings.url
    place = place_of(url)
    name = place.rpartition("/")[2] if url.startswith("sqlite:") else place
    if not once and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        raise typer.Exit(operate(ctx, lambda operator: Top(operator, name, interval).run()))
    snapshot = run(asked(url, lambda store: look(store, name)))
    if as_json:
        write_json(snapshot.documented())
    else:
        out = console()
        out.print(printed(snapshot, out.width))
