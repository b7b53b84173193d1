"""`penstock health`: what `/api/health` says, without a server."""

from typing import TYPE_CHECKING

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, plain, write_json
from penstock.cli.session import ask, session

if TYPE_CHECKING:
    from penstock.client.health import Health
    from penstock.store.contract import Store

MARKS = {"healthy": "[green]✓[/]", "degraded": "[yellow]![/]", "unhealthy": "[red]✗[/]"}


def health(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """Say how store, workers, queues and dead letters are; exit 1 when one is unhealthy."""
    from penstock.client.health import check_health

    settings = session(ctx).settings

    async def look(store: "Store") -> "Health":
        return await check_health(store, settings)

    found = ask(ctx, look).document()
    if as_json:
        write_json(found)
    else:
        out = console()
        for name, check in found["checks"].items():
            out.print(
                f"{MARKS[check['status']]} {name.replace('_', ' ')}: {plain(check['detail'])}"
            )
        out.print(f"[bold]{found['status'].capitalize()}.[/]")
    raise typer.Exit(exits.FAILED if found["status"] == "unhealthy" else exits.OK)
