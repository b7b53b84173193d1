"""`penstock check-payloads`: does what waits fit the code that is about to be deployed?"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, plain, progress_bar, table, write_json
from penstock.cli.session import ask_app, load
from penstock.model.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.app.penstock import Penstock
    from penstock.operate.check_payloads import PayloadCheck, TypeCheck


def check_payloads(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The application to check.")],
    examples: Annotated[
        int, typer.Option(min=0, max=100, help="How many that do not fit to show per type.")
    ] = 3,
    as_json: JsonFlag = False,
) -> None:
    """Check every waiting job and schedule against the code's types; exit 1 if one does not fit."""
    found = ask_app(load(ctx, target), lambda app: checked(app, examples))
    if as_json:
        write_json(check_document(found))
    else:
        show_check(console(), found)
    raise typer.Exit(exits.OK if found.fits else exits.FAILED)


async def checked(app: "Penstock", examples: int) -> "PayloadCheck":
    """Check with a bar for those who wait."""
    depths = await app.store.metrics.depths()
    waiting = sum(d.pending + d.queued + d.failed + d.paused for d in depths)
    with progress_bar("Checking", waiting) as show:
        return await app.check_payloads(
            examples=examples, progress=lambda done: show(done, max(done, waiting))
        )


def check_document(found: "PayloadCheck") -> dict[str, Any]:
    """What was found, for scripts."""
    return {
        "fits": found.fits,
        "checked": found.checked,
        "jobs": [_type_document(each) for each in found.jobs],
        "schedules": [_type_document(each) for each in found.schedules],
    }


def show_check(out: "Console", found: "PayloadCheck") -> None:
    """What was found, for a person."""
    for title, checks in (("TYPE", found.jobs), ("SCHEDULED TYPE", found.schedules)):
        if checks:
            made = table(title, "FITS#", "DOES NOT FIT#", "UNKNOWN TYPE#")
            for each in checks:
                unfit, unknown = (each.unfit, 0) if each.known else (0, each.unfit)
                made.add_row(plain(each.type), f"{each.fitting:,}", _red(unfit), _red(unknown))
            out.print(made)
    for each in (*found.jobs, *found.schedules):
        for example in each.examples:
            out.print(f"[red]✗[/] [bold]{plain(example.id)}[/] {plain(example.problem)}")
    schedules = sum(each.fitting + each.unfit for each in found.schedules)
    looked = f"{counted(found.checked, 'waiting job')} and {counted(schedules, 'schedule')}"
    if found.fits:
        out.print(f"[green]✓[/] All of {looked} fit.")
    else:
        unfit = sum(each.unfit for each in (*found.jobs, *found.schedules))
        verb, them = ("does", "it") if unfit == 1 else ("do", "them")
        told = f"{unfit:,} of {looked} {verb} not fit; this deploy would break {them}."
        out.print(f"[red]✗[/] {told}")


def _type_document(each: "TypeCheck") -> dict[str, Any]:
    return {
        "type": each.type,
        "known": each.known,
        "fitting": each.fitting,
        "unfit": each.unfit,
        "examples": [{"id": one.id, "problem": one.problem} for one in each.examples],
    }


def _red(number: int) -> str:
    return f"[red]{number:,}[/]" if number else "0"
