"""Tokens for programs: made, listed, revoked."""

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field

from penstock.server.access.identity import Scope, parse_scopes
from penstock.server.access.operating import AccessOperator
from penstock.server.access.tokens import token_document
from penstock.server.api.models import Document, Moment, Name, PageSize, Text
from penstock.server.api.router import api_router
from penstock.server.guard import MayAdmin
from penstock.server.state import Here

router = api_router("/api/tokens", "tokens")

After = Annotated[str, Query(max_length=64, description="The `next` of the page before.")]


class NewToken(Document):
    """A token to make."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "billing", "scopes": ["enqueue"], "tenant": "acme"}]
        }
    )

    name: Name
    scopes: list[Scope] = Field(min_length=1, max_length=4)
    tenant: Text | None = Field(
        None, description="The one tenant it may see; left out, all of them."
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
    """A page of all tokens there are or were, the oldest first."""

    tokens: list[Token]
    next: str | None = Field(
        description="Send it as `after` for the following page; null when there is none."
    )


@router.post("", operation_id="create_token", status_code=201)
async def create_token(server: Here, caller: MayAdmin, new: NewToken) -> CreatedToken:
    """Make a token; the answer is the only one that shows it."""
    made, text = await AccessOperator(server.operator(caller)).create_token(
        new.name,
        parse_scopes(new.scopes),
        tenant_id=new.tenant,
        expires_in_ms=None if new.expires_in is None else int(new.expires_in * 1000),
    )
    return CreatedToken.model_construct(**token_document(made), token=text)


@router.get("", operation_id="list_tokens")
async def list_tokens(
    server: Here, _: MayAdmin, after: After = "", limit: PageSize = 100
) -> TokenList:
    """The tokens there are or were, the oldest first."""
    found = await server.tokens.page(after, limit + 1)
    shown = found[:limit]
    return TokenList.model_construct(
        tokens=[Token.model_construct(**token_document(token)) for token in shown],
        next=shown[-1].id if len(found) > limit else None,
    )


@router.delete("/{token_id}", operation_id="revoke_token")
async def revoke_token(server: Here, caller: MayAdmin, token_id: str) -> Token:
    """Let a token open nothing any more; it stays listed."""
    revoked = await AccessOperator(server.operator(caller)).revoke_token(token_id)
    return Token.model_construct(**token_document(revoked))
