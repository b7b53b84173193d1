"""`penstock doctor`: does the store keep its promises, and does anybody do the work?"""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, plain, write_json
from penstock.cli.session import app_on, asked, bare_app, load, run

if TYPE_CHECKING:
    from penstock.cli.checks import Check
    from penstock.store.contract import Store

MARKS = {"ok": "[green]✓ ok[/]", "warning": "[yellow]! warning[/]", "wrong": "[red]✗ failed[/]"}


def doctor(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(metavar="MODULE:APP", help="Also check this application's job types."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check the store's promises, the workers and what waits; exit 1 when something is wrong."""
    from penstock.cli.checks import examine
    from penstock.model.redact import without_password

    app = bare_app(ctx) if target is None else load(ctx, target)
    settings = app.settings
    url = without_password(settings.url)
    types = None if target is None else frozenset(app.types)

    async def look(store: "Store") -> "tuple[str, list[Check]]":
        return await examine(app_on(store, app), types)

    promise, checks = run(asked(settings.url, look, dispatch=settings.dispatch or None))
    wrong = [c for c in checks if c.level == "wrong" or (strict and c.level == "warning")]
    if as_json:
        write_json(
            {
                "url": url,
                "promise": promise,
                "healthy": not wrong,
                "checks": [check._asdict() for check in checks],
            }
        )
    else:
        show(url, promise, checks, len(wrong))
    raise typer.Exit(exits.FAILED if wrong else exits.OK)


def show(url: str, promise: str, checks: "list[Check]", wrong: int) -> None:
    """The checks for a person, and what follows from them."""
    from rich.table import Column, Table

    out = console()
    out.print(f"[bold]{plain(url)}[/]\n[dim]{plain(promise)}[/]")
    made = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(), padding=(0, 2))
    for check in checks:
        made.add_row(MARKS[check.level], check.name, plain(check.detail))
    out.print(made)
    if wrong:
        out.print(f"[red bold]{wrong} of {len(checks)} checks failed.[/]")
    else:
        looks = sum(check.level == "warning" for check in checks)
        rest = f"; {looks} worth a look" if looks else ""
        out.print(f"[green bold]Nothing is wrong[/]{rest}.")
