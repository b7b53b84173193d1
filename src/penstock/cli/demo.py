"""`penstock demo`."""

from typing import Annotated

import typer

from penstock.cli.session import session


def demo(
    ctx: typer.Context,
    seconds: Annotated[float, typer.Option(min=5, max=600, help="How long it plays.")] = 30,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live screen.")] = False,
) -> None:
    """Watch jobs flow, retry, die and be rescued, on a temporary store (or --url)."""
    from penstock.demo.play import play

    raise typer.Exit(play(url=session(ctx).url, seconds=seconds, plain=plain))
