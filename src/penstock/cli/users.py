"""`penstock users`: who may log in to the dashboard."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.confirm import YesFlag, confirm
from penstock.cli.output import JsonFlag, console, plain, table, write_json
from penstock.cli.root import NotFound
from penstock.cli.session import ask_now, operate
from penstock.cli.tokens import TenantOption, split
from penstock.client.documents import document
from penstock.model.spans import ago

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.client.operator import Operator
    from penstock.server.access.users import User, Users
    from penstock.store.contract import Store

app = typer.Typer(no_args_is_help=True, help="Say who may log in to the dashboard.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]


@app.command("add")
def add(
    ctx: typer.Context,
    name: Name,
    scopes: Annotated[
        str, typer.Option(metavar="A,B", help="What they may do: enqueue, read, operate, admin.")
    ] = "admin",
    tenant: TenantOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a user; the password is asked for, or read from standard input."""
    from penstock.server.access.scopes import parse_scopes

    granted = parse_scopes(split(scopes))
    password = read_password()

    async def act(operator: "Operator") -> "User":
        details: dict[str, Any] = {"scopes": granted, "tenant": tenant}
        async with operator.doing("user.create", f"user:{name}", **details):
            return await users(operator.app.store).create(
                name, password, granted, by=operator.actor, tenant_id=tenant
            )

    made = operate(ctx, act, create=True)
    if as_json:
        write_json(user_document(made))
    else:
        typer.echo(f"{plain(made.name)} may log in and do: {', '.join(made.scopes)}.")


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the users, by name."""
    found, now = ask_now(ctx, lambda store: users(store).all())
    if as_json:
        write_json([user_document(user) for user in found])
    elif found:
        console().print(user_table(found, now))
    else:
        typer.echo("No users; add one with `penstock users add NAME`.")


@app.command("passwd")
def passwd(ctx: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Give a user another password, which ends their sessions."""
    password = read_password()

    async def act(operator: "Operator") -> "User":
        known = users(operator.app.store)
        await existing(known, name)
        async with operator.doing("user.password", f"user:{name}"):
            return await known.set_password(name, password)

    changed = operate(ctx, act)
    if as_json:
        write_json(user_document(changed))
    else:
        typer.echo(f"{plain(changed.name)} has another password and must log in again.")


@app.command("rm")
def rm(ctx: typer.Context, name: Name, yes: YesFlag = False, as_json: JsonFlag = False) -> None:
    """Remove a user, which ends their sessions."""
    confirm(f"Remove the user {plain(name)}?", yes=yes)

    async def act(operator: "Operator") -> "User":
        known = users(operator.app.store)
        await existing(known, name)
        async with operator.doing("user.remove", f"user:{name}"):
            return await known.remove(name)

    removed = operate(ctx, act)
    if as_json:
        write_json({"removed": removed.name})
    else:
        typer.echo(f"{plain(removed.name)} may not log in any more.")


def users(store: "Store") -> "Users":
    """Imported only when something has to run."""
    from penstock.server.access.users import Users

    return Users(store)


async def existing(known: "Users", name: str) -> None:
    """Refuse a name that nobody has."""
    if await known.get(name) is None:
        raise NotFound(f"There is no user {name!r}; see `penstock users ls`.")


def read_password() -> str:
    """A password that was typed twice and not shown, or one line of standard input."""
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\r\n")


def user_document(user: "User") -> dict[str, Any]:
    """What is known of a user, without the password's hash."""
    opened = document(user) | {"scopes": list(user.scopes)}
    return {name: value for name, value in opened.items() if name != "password"}


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
