"""`penstock pause`, `resume` and `pauses`: holding work back, and letting it go on."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, console, plain, table, write_json
from penstock.cli.root import say
from penstock.cli.session import ask_now, full_id, operate, user
from penstock.model.controls import PauseScope
from penstock.model.wording import ago
from penstock.operate.documents import document

if TYPE_CHECKING:
    from penstock.model.controls import Pause
    from penstock.operate.actor import Operator

Kind = Annotated[PauseScope, typer.Argument(metavar="KIND", help="job, queue, type or tenant.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, or the job's id or its beginning.")
]


def pause(
    ctx: typer.Context,
    kind: Kind,
    name: Name,
    reason: Annotated[str | None, typer.Option(help="The reason; others will see it.")] = None,
    by: Annotated[str | None, typer.Option(help="Who.", show_default="this user")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Pause the jobs of a queue, type or tenant, or one job; running jobs finish."""
    from penstock.operate.controls import unknown_warning

    name = full_id(ctx, name) if kind is PauseScope.JOB else name
    who, what = by or user(), _about(kind, name)

    async def act(operator: "Operator") -> "tuple[Pause, str | None]":
        warning = await unknown_warning(operator.app, **what)
        return await operator.controls.pause(reason=reason, by=who, **what), warning

    made, warning = operate(ctx, act)
    if warning is not None:
        say(f"{warning[0].lower()}{warning[1:]}", 0)
    if as_json:
        write_json(document(made))
    else:
        again = f"penstock resume {kind.value} {name}"
        typer.echo(f"{kind.value.capitalize()} {name} is paused until `{again}`.")


def resume(ctx: typer.Context, kind: Kind, name: Name, as_json: JsonFlag = False) -> None:
    """Resume what is paused, with its own times and order."""
    name = full_id(ctx, name) if kind is PauseScope.JOB else name
    what = _about(kind, name)
    resumed = operate(ctx, lambda it: it.controls.resume(**what))
    if as_json:
        write_json({"resumed": resumed})
    elif resumed:
        typer.echo(f"{kind.value.capitalize()} {name} is resumed.")
    else:
        typer.echo(f"{kind.value.capitalize()} {name} was not paused.")


def pauses(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List what is paused, the oldest first."""
    found, now = ask_now(ctx, lambda store: store.controls.pauses())
    if as_json:
        write_json([document(one) for one in found])
    elif not found:
        typer.echo("Nothing is paused.")
    else:
        made = table("KIND", "NAME", "SINCE", "BY", note="REASON")
        for one in found:
            made.add_row(
                one.scope.value,
                plain(one.name),
                ago(one.created_at, now),
                plain(one.paused_by or "–"),
                plain(one.reason or "–"),
            )
        console().print(made)


def _about(kind: PauseScope, name: str) -> Any:
    return {kind.value: name}
