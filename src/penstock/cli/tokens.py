"""`penstock tokens`: what programs show to a server."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import JsonFlag, console, name_list, parse_span, plain, table, write_json
from penstock.cli.session import ask_now, operate
from penstock.model.wording import ago

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.operate.actor import Operator
    from penstock.server.access.tokens import Token

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke tokens for programs.")

Scopes = Annotated[
    list[str],
    name_list(metavar="A,B", help="What it may do: enqueue, record, read, operate, admin."),
]
TenantOption = Annotated[
    str | None, typer.Option(help="Bind it to this tenant.", show_default="all")
]


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")],
    scopes: Scopes,
    tenant: TenantOption = None,
    expires_in: Annotated[
        str | None, typer.Option(metavar="SPAN", help="How long it is valid: 12h, 90d.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token; it is shown this once, and only its hash is kept."""
    from penstock.server.access.identity import parse_scopes
    from penstock.server.access.operating import AccessOperator
    from penstock.server.access.tokens import token_document

    granted = parse_scopes(scopes)
    life = None if expires_in is None else parse_span(expires_in, "expires-in")

    async def act(operator: "Operator") -> "tuple[Token, str]":
        access = AccessOperator(operator)
        return await access.create_token(name, granted, tenant_id=tenant, expires_in_ms=life)

    made, text = operate(ctx, act, create=True)
    if as_json:
        write_json(token_document(made) | {"token": text})
    else:
        typer.echo(text)
        typer.echo(f"It is shown only now; `penstock tokens revoke {made.id}` ends it.", err=True)


@app.command("ls")
def ls(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List every token there is or was, the oldest first."""
    from penstock.server.access.tokens import Tokens, token_document

    found, now = ask_now(ctx, lambda store: Tokens(store).all())
    if as_json:
        write_json([token_document(token) for token in found])
    elif found:
        console().print(token_table(found, now))
    else:
        typer.echo("No tokens; create one with `penstock tokens create NAME --scopes read`.")


@app.command("revoke")
def revoke(
    ctx: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id.")],
    as_json: JsonFlag = False,
) -> None:
    """Let a token open nothing any more; it stays listed."""

    from penstock.server.access.operating import AccessOperator
    from penstock.server.access.tokens import token_document

    revoked = operate(ctx, lambda operator: AccessOperator(operator).revoke_token(token_id))
    if as_json:
        write_json(token_document(revoked))
    else:
        typer.echo(f"Token {revoked.id} ({plain(revoked.name)}) is revoked.")


def token_table(found: "list[Token]", now: int) -> "Table":
    """One line per token."""
    made = table("ID", "NAME", "SCOPES", "TENANT", "CREATED", "STATE", note="BY")
    for token in found:
        made.add_row(
            token.id,
            plain(token.name),
            ",".join(token.scopes),
            "all" if token.tenant_id is None else plain(token.tenant_id),
            ago(token.created_at, now),
            state_of(token, now),
            plain(token.created_by),
        )
    return made


def state_of(token: "Token", now: int) -> str:
    """Whether it opens anything."""
    if token.revoked_at is not None:
        return "[red]revoked[/]"
    expired = token.expires_at is not None and token.expires_at <= now
    return "[yellow]expired[/]" if expired else "[green]valid[/]"
