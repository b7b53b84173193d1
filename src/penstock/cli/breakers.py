"""`penstock breakers`: what jobs depend on, and whether it answers."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, bar, console, plain, table, write_json
from penstock.cli.session import ask_now, operate
from penstock.model.controls import BreakerPosition
from penstock.model.wording import span
from penstock.operate.documents import document

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.model.controls import BreakerState

app = typer.Typer(no_args_is_help=True, help="See circuit breakers and close them by hand.")

STYLES = {
    BreakerPosition.CLOSED: "green",
    BreakerPosition.OPEN: "red",
    BreakerPosition.HALF_OPEN: "yellow",
}


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the breakers: closed lets jobs through, open none, half-open one to try."""
    found, now = ask_now(ctx, lambda store: store.controls.breakers())
    if as_json:
        write_json([breaker_document(state, now) for state in found])
    elif found:
        console().print(breaker_table(found, now))
    else:
        typer.echo('No breakers; a job type names one with `@app.job(breaker="…")`.')


@app.command("reset")
def reset(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The breaker's name.")],
    as_json: JsonFlag = False,
) -> None:
    """Close a breaker by hand, so that its jobs run at once."""
    operate(ctx, lambda operator: operator.controls.reset_breaker(name))
    if as_json:
        write_json({"reset": name})
    else:
        typer.echo(f"Breaker {name} is closed.")


def breaker_document(state: "BreakerState", now: int) -> dict[str, Any]:
    """A breaker and its state as one document."""
    found = document(state)
    return {
        **document(state.breaker),
        "position": state.position(now).value,
        "tries_in_ms": state.tries_in_ms(now),
        **{name: value for name, value in found.items() if name != "breaker"},
    }


def breaker_table(found: "list[BreakerState]", now: int) -> "Table":
    """One line per breaker."""
    made = table("NAME", "POSITION", "FAILURES", "TRIES AGAIN IN#", note="TYPES")
    for state in found:
        position = state.position(now)
        allowed = state.breaker.failures
        made.add_row(
            plain(state.breaker.name),
            f"[{STYLES[position]}]{position.value}[/]",
            f"{bar(state.failed, allowed)} {state.failed}/{allowed}",
            span(state.tries_in_ms(now)),
            plain(", ".join(state.breaker.types)),
        )
    return made
