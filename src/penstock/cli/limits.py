"""`penstock limits`: how much may run at once, start in a while, or wait in a queue."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, bar, console, plain, table, write_json
from penstock.cli.session import ask, operate
from penstock.model.controls import EVERY, LimitKind, LimitScope
from penstock.model.wording import span
from penstock.operate.documents import document

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.model.controls import LimitState
    from penstock.operate.actor import Operator

app = typer.Typer(no_args_is_help=True, help="See and change limits while everything runs.")

About = Annotated[LimitScope, typer.Argument(metavar="KIND", help="type, key, tenant or queue.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name; '*' means each one separately.")
]


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the limits and how much of each is used."""
    found = ask(ctx, lambda store: store.controls.limits())
    if as_json:
        write_json([limit_document(state) for state in found])
    elif found:
        console().print(limit_table(found))
    else:
        typer.echo("No limits; set one with `penstock limits set KIND NAME --concurrency N`.")


@app.command("set")
def set_(
    ctx: typer.Context,
    about: About,
    name: Name,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="At most this many at once.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="N/TIME", help="At most this many per time: 10/s, 100/min."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="At most this many waiting.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Set limits; they hold from the next claim on, and no deploy overwrites them."""

    async def put(operator: "Operator") -> "list[LimitState]":
        what: Any = {about.value: name, "concurrency": concurrency, "rate": rate, "depth": depth}
        await operator.controls.set_limit(**what)
        known = await operator.controls.limits()
        return [state for state in known if is_about(state, about, name)]

    found = operate(ctx, put)
    if as_json:
        write_json([limit_document(state) for state in found])
    else:
        console().print(limit_table(found))


@app.command("rm")
def rm(
    ctx: typer.Context,
    about: About,
    name: Name,
    kind: Annotated[
        LimitKind | None, typer.Option(help="Only this kind: concurrency, rate or depth.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Take limits away; one that code declares comes back with the next worker that starts."""
    chosen = None if kind is None else kind.value
    what: Any = {about.value: name}
    operate(ctx, lambda operator: operator.controls.remove_limit(kind=chosen, **what))
    if as_json:
        write_json({"removed": {"kind": about.value, "name": name}})
    else:
        typer.echo(f"{about.value.capitalize()} {name} no longer has this limit.")


def is_about(state: "LimitState", about: LimitScope, name: str) -> bool:
    """Whether a limit is the one that was named."""
    return (state.limit.scope, state.limit.name) == (about, name)


def limit_document(state: "LimitState") -> dict[str, Any]:
    """A limit and its state as one document."""
    found = document(state)
    return {**document(state.limit), **{n: v for n, v in found.items() if n != "limit"}}


def limit_table(found: "list[LimitState]") -> "Table":
    """One line per limit."""
    made = table("KIND", "NAME", "LIMIT", "USED", "FREES UP IN#", note="SET BY")
    for state in found:
        limit = state.limit
        each = limit.name == EVERY
        made.add_row(
            limit.scope.value,
            plain(limit.name),
            bound(state),
            "–" if each else f"{bar(state.used, limit.capacity)} {state.used}/{limit.capacity}",
            span(state.frees_in_ms),
            "an operator" if limit.by_operator else "code",
        )
    return made


def bound(state: "LimitState") -> str:
    """What a limit allows, in words."""
    limit = state.limit
    if limit.kind is LimitKind.RATE:
        return f"{limit.capacity:,} per {span(limit.interval_ms)}"
    return f"{limit.capacity:,} {'at once' if limit.kind is LimitKind.CONCURRENCY else 'waiting'}"
