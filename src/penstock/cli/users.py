"""`penstock users`: who may log in to the dashboard."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import JsonFlag, YesFlag, confirm, console, plain, table, write_json
from penstock.cli.root import Refused
from penstock.cli.session import ask_now, operate
from penstock.cli.tokens import Scopes, TenantOption
from penstock.model.wording import ago

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.operate.actor import Operator
    from penstock.server.access.users import User

app = typer.Typer(no_args_is_help=True, help="Manage who may log in to the dashboard.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]


@app.command("add")
def add(
    ctx: typer.Context,
    name: Name,
    scopes: Scopes = ["admin"],  # noqa: B006 - Typer copies it
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a user; the password is asked for, or read from standard input."""
    from penstock.server.access.identity import parse_scopes
    from penstock.server.access.operating import AccessOperator
    from penstock.server.access.users import user_document

    granted = parse_scopes(scopes)
    password = read_password()

    async def act(operator: "Operator") -> "User":
        access = AccessOperator(operator)
        return await access.add_user(name, password, granted, tenant_id=tenant)

    added = operate(ctx, act, create=True)
    if as_json:
        write_json(user_document(added))
    else:
        typer.echo(f"{plain(added.name)} may log in with: {', '.join(added.scopes)}.")


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the users, by name."""
    from penstock.server.access.users import Users, user_document

    found, now = ask_now(ctx, lambda store: Users(store).all())
    if as_json:
        write_json([user_document(user) for user in found])
    elif found:
        console().print(user_table(found, now))
    else:
        typer.echo("No users; add one with `penstock users add NAME`.")


@app.command("passwd")
def passwd(ctx: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Give a user another password, which ends their sessions."""
    from penstock.server.access.operating import AccessOperator
    from penstock.server.access.users import user_document

    password = read_password()
    changed = operate(ctx, lambda operator: AccessOperator(operator).set_password(name, password))
    if as_json:
        write_json(user_document(changed))
    else:
        typer.echo(f"{plain(changed.name)} has a new password and must log in again.")


@app.command("rm")
def rm(ctx: typer.Context, name: Name, yes: YesFlag = False, as_json: JsonFlag = False) -> None:
    """Remove a user, which ends their sessions."""
    from penstock.server.access.operating import AccessOperator

    confirm(f"Remove the user {plain(name)}?", yes=yes)
    removed = operate(ctx, lambda operator: AccessOperator(operator).remove_user(name))
    if as_json:
        write_json({"removed": removed.name})
    else:
        typer.echo(f"{plain(removed.name)} can no longer log in.")


def read_password() -> str:
    """A password that was typed twice and not shown, or one line of standard input."""
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise Refused("No password was given; type it when asked, or send it on standard input.")
    return password


def user_table(found: "list[User]", now: int) -> "Table":
    """One line per user."""
    made = table("NAME", "SCOPES", "TENANT", "ADDED", note="BY")
    for user in found:
        made.add_row(
            plain(user.name),
            ",".join(user.scopes),
            "all" if user.tenant_id is None else plain(user.tenant_id),
            ago(user.created_at, now),
            plain(user.created_by),
        )
    return made
