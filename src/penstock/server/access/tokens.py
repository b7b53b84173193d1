"""Tokens for programs: `pk_ID_SECRET`, of which only a hash is kept."""

from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.ids import is_id, new_id
from penstock.model.not_found import TokenNotFound
from penstock.operate.documents import document
from penstock.server.access.identity import Identity, Scope, hash_of_secret, random_secret, same
from penstock.store.contract import Store
from penstock.store.contract.records import every

KIND = "token"
PREFIX = "pk_"


class Token(Struct, frozen=True, kw_only=True):
    """What is known of a token; its secret is not."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    tenant_id: str | None
    hash: str
    created_by: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None


class Tokens:
    """Made, listed, checked and revoked; a revoked one stays listed, as the audit log names it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(
        self,
        name: str,
        scopes: tuple[Scope, ...],
        *,
        by: str,
        tenant_id: str | None = None,
        expires_in_ms: int | None = None,
    ) -> tuple[Token, str]:
        """Make a token; what it says of itself, and the text that is shown once."""
        now = self._store.clock.now()
        secret = random_secret()
        token = Token(
            id=new_id(),
            name=name,
            scopes=scopes,
            tenant_id=tenant_id,
            hash=hash_of_secret(secret),
            created_by=by,
            created_at=now,
            expires_at=None if expires_in_ms is None else now + expires_in_ms,
        )
        await self._store.records.put(KIND, token.id, encode(token).decode(), revision=0)
        return token, f"{PREFIX}{token.id}_{secret}"

    async def all(self) -> list[Token]:
        """Every token there is or was, by id, which is by age."""
        return [
            decode(record.document, type=Token) async for record in every(self._store.records, KIND)
        ]

    async def page(self, after: str, limit: int) -> list[Token]:
        """So many of them, behind the one with this id."""
        found = await self._store.records.list(KIND, after=after, limit=limit)
        return [decode(record.document, type=Token) for record in found]

    async def get(self, token_id: str) -> Token | None:
        """One token, or none."""
        record = await self._store.records.get(KIND, token_id) if is_id(token_id) else None
        return None if record is None else decode(record.document, type=Token)

    async def known(self, token_id: str) -> Token:
        """One token, or TokenNotFound."""
        token = await self.get(token_id)
        if token is None:
            raise TokenNotFound(token_id)
        return token

    async def revoke(self, token_id: str) -> Token:
        """Let a token open nothing any more."""
        token = await self.known(token_id)
        if token.revoked_at is None:
            token = replace(token, revoked_at=self._store.clock.now())
            await self._store.records.put(KIND, token_id, encode(token).decode())
        return token

    async def identify(self, text: str) -> Identity | None:
        """Who a token stands for; none if it is unknown, wrong, expired or revoked."""
        token_id, _, secret = text.removeprefix(PREFIX).partition("_")
        if not text.startswith(PREFIX) or not secret:
            return None
        token = await self.get(token_id)
        if token is None:
            return None
        if not same(token.hash, hash_of_secret(secret)) or token.revoked_at is not None:
            return None
        if token.expires_at is not None and token.expires_at <= self._store.clock.now():
            return None
        return Identity(actor=f"token:{token.id}", scopes=token.scopes, tenant_id=token.tenant_id)


def token_document(token: Token) -> dict[str, Any]:
    """What is known of a token, without its hash."""
    told = document(token) | {"scopes": list(token.scopes)}
    del told["hash"]
    return told
