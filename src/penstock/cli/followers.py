"""`penstock followers`: who is told what becomes of jobs, and how much waits to be told."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import JsonFlag, YesFlag, confirm, console, plain, table, write_json
from penstock.cli.session import ask_now, operate
from penstock.model.wording import span
from penstock.operate.documents import document

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.store.contract import FollowerState

app = typer.Typer(no_args_is_help=True, help="See who is told what becomes of jobs.")


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the followers, and how many changes wait for each since when."""
    states, now = ask_now(ctx, lambda store: store.changes.followers())
    if as_json:
        write_json([document(state) for state in states])
    elif states:
        console().print(follower_table(states, now))
    else:
        typer.echo("No followers; an extension brings them.")


@app.command("drop")
def drop(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The follower's name.")],
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Forget a follower that nobody needs any more, and all that waits for it."""
    confirm(f"Drop {name}? What it was not told of yet is lost.", yes=yes)
    operate(ctx, lambda operator: operator.followers.drop(name))
    if as_json:
        write_json({"dropped": name})
    else:
        typer.echo(f"Follower {name} is dropped; where its extension is in use, it comes back.")


def follower_table(states: "list[FollowerState]", now: int) -> "Table":
    """One line per follower."""
    made = table("NAME", "WAITING#", "OLDEST#", note="TOLD OF")
    for state in states:
        made.add_row(
            plain(state.name),
            f"{state.waiting:,}",
            span(None if state.oldest_at is None else now - state.oldest_at),
            plain(", ".join(state.statuses)),
        )
    return made
