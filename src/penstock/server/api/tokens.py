"""Tokens for programs: made, listed, revoked."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from penstock.client.documents import document
from penstock.model.ids import is_id
from penstock.server.access import tokens
from penstock.server.access.guard import Admin
from penstock.server.access.scopes import Scope, parse_scopes
from penstock.server.api.models import Document, Moment
from penstock.server.api.router import api_router
from penstock.server.problems import Refusal
from penstock.server.state import Here

router = api_router("/api/tokens", "tokens")


class NewToken(Document):
    """A token to make."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "billing", "scopes": ["enqueue"], "tenant": "acme"}]
        }
    )

    name: Annotated[str, Field(min_length=1, max_length=128)]
    scopes: list[Scope] = Field(min_length=1, max_length=4)
    tenant: str | None = Field(
        None, max_length=128, description="The one tenant it may see; left out, all of them."
    )
    expires_in: float | None = Field(None, gt=0, lt=1e10, description="Seconds.")


class Token(Document):
    """What is known of a token; its secret is not."""

    id: str
    name: str
    scopes: list[Scope]
    tenant_id: str | None
    created_by: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None


class CreatedToken(Token):
    """A token that was just made."""

    token: str = Field(description="Shown this once; send it as `Authorization: Bearer …`.")


class TokenList(Document):
    """Every token there is or was, by age."""

    tokens: list[Token]


@router.post("", operation_id="create_token", status_code=201)
async def create_token(server: Here, caller: Admin, new: NewToken) -> CreatedToken:
    """Make a token; the answer is the only one that shows it."""
    scopes = parse_scopes(new.scopes)
    details: dict[str, Any] = {"name": new.name, "scopes": scopes, "tenant": new.tenant}
    async with server.operator(caller).doing("token.create", "tokens", **details):
        made, text = await server.tokens.create(
            new.name,
            scopes,
            by=caller.actor,
            tenant_id=new.tenant,
            expires_in_ms=None if new.expires_in is None else int(new.expires_in * 1000),
        )
    return CreatedToken.model_construct(**_known(made), token=text)


@router.get("", operation_id="list_tokens")
async def list_tokens(server: Here, _: Admin) -> TokenList:
    """Every token there is or was."""
    found = await server.tokens.all()
    return TokenList.model_construct(tokens=[Token.model_construct(**_known(t)) for t in found])


@router.delete("/{token_id}", operation_id="revoke_token")
async def revoke_token(server: Here, caller: Admin, token_id: str) -> Token:
    """Let a token open nothing any more; it stays listed."""
    if token_id not in {token.id for token in await server.tokens.all()} or not is_id(token_id):
        raise Refusal(404, f"There is no token {token_id[:64]!r}.")
    async with server.operator(caller).doing("token.revoke", f"token:{token_id}"):
        revoked = await server.tokens.revoke(token_id)
    return Token.model_construct(**_known(revoked))


def _known(token: tokens.Token) -> dict[str, Any]:
    opened = document(token) | {"scopes": list(token.scopes)}
    return {name: opened[name] for name in Token.model_fields}
