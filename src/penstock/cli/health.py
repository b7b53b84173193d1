"""`penstock health`: what `/api/health` says, without a server, or how one worker is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, parse_span, plain, write_json
from penstock.cli.session import app_on, ask, bare_app, session

if TYPE_CHECKING:
    from penstock.operate.health import Health
    from penstock.store.contract import Store

MARKS = {"healthy": "[green]✓[/]", "degraded": "[yellow]![/]", "unhealthy": "[red]✗[/]"}


def health(
    ctx: typer.Context,
    worker: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Check only the worker started with --health FOLDER, without asking a store.",
            show_default=False,
        ),
    ] = None,
    max_age: Annotated[
        str,
        typer.Option(
            metavar="SPAN", help="With --worker: how long a worker may go without looking for work."
        ),
    ] = "2m",
    as_json: JsonFlag = False,
) -> None:
    """Say how store, workers, queues and dead letters are; exit 1 when one is unhealthy.

    With --worker, that is when one of its processes has not looked for work for too long. A store
    that is away makes no worker unhealthy: it asks again, and a restart would not help.
    """
    if worker is not None:
        well = _judge(worker, parse_span(max_age, "max-age") / 1000, as_json=as_json)
        raise typer.Exit(exits.OK if well else exits.FAILED)
    from penstock.operate.health import check_health

    settings = session(ctx).settings

    async def look(store: "Store") -> "Health":
        return await check_health(store, settings, app_on(store, bare_app(ctx)))

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


def _judge(folder: Path, max_age: float, *, as_json: bool) -> bool:
    """Say how long ago each process of a worker looked for work; whether none is too silent."""
    from penstock.worker.health import HealthFolder

    found = HealthFolder(folder).read()
    silent = [each for each in found if each.age_seconds > max_age]
    well = bool(found) and not silent
    if as_json:
        processes = [
            {"name": each.name, "age_seconds": round(each.age_seconds, 1)} for each in found
        ]
        write_json({"status": "healthy" if well else "unhealthy", "processes": processes})
    elif well:
        typer.echo(f"{', '.join(each.name for each in found)}: healthy.")
    elif found:
        for each in silent:
            typer.echo(f"{each.name} has not looked for work for {each.age_seconds:.0f} s.")
    else:
        typer.echo(f"No worker keeps {folder}; `penstock worker` does with --health {folder}.")
    return well
