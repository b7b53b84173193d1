"""Tokens and users, made and taken away by an operator, on record."""

from typing import TYPE_CHECKING, Any

from penstock.model.errors import InvalidOption
from penstock.server.access.identity import LOCAL, Scope, checked_name, checked_tenant
from penstock.server.access.tokens import Token, Tokens
from penstock.server.access.users import User, Users, checked_user_name

if TYPE_CHECKING:
    from penstock.operate.actor import Operator


class AccessOperator:
    """`AccessOperator(operator)`: for operators who let others in."""

    def __init__(self, operator: "Operator") -> None:
        self._actor = operator.actor
        self._tokens = Tokens(operator.app.store)
        self._users = Users(operator.app.store)

    async def create_token(
        self,
        name: str,
        scopes: tuple[Scope, ...],
        *,
        tenant_id: str | None = None,
        expires_in_ms: int | None = None,
    ) -> tuple[Token, str]:
        """Make a token; what is known of it, and the text that is shown once."""
        self._check(scopes, tenant_id)
        told: dict[str, Any] = {"name": checked_name(name), "scopes": scopes, "tenant": tenant_id}
        async with self._actor.doing("token.create", "tokens", tenant_id=tenant_id, **told):
            return await self._tokens.create(
                name,
                scopes,
                by=self._actor.name,
                tenant_id=tenant_id,
                expires_in_ms=expires_in_ms,
            )

    async def revoke_token(self, token_id: str) -> Token:
        """Let a token open nothing any more; TokenNotFound if there is none."""
        token = await self._tokens.known(token_id)
        subject = f"token:{token.id}"
        async with self._actor.doing("token.revoke", subject, tenant_id=token.tenant_id):
            return await self._tokens.revoke(token.id)

    async def add_user(
        self, name: str, password: str, scopes: tuple[Scope, ...], *, tenant_id: str | None = None
    ) -> User:
        """Add a user; a name that is taken is refused."""
        self._check(scopes, tenant_id)
        subject = f"user:{checked_user_name(name)}"
        told: dict[str, Any] = {"scopes": scopes, "tenant": tenant_id}
        async with self._actor.doing("user.add", subject, tenant_id=tenant_id, **told):
            return await self._users.create(
                name, password, scopes, by=self._actor.name, tenant_id=tenant_id
            )

    async def set_password(self, name: str, password: str) -> User:
        """Give a user another password, which ends their sessions; UserNotFound if none is so."""
        user = await self._users.known(name)
        subject = f"user:{user.name}"
        async with self._actor.doing("user.password", subject, tenant_id=user.tenant_id):
            return await self._users.set_password(user.name, password)

    async def remove_user(self, name: str) -> User:
        """Remove a user, which ends their sessions; nobody removes themselves."""
        user = await self._users.known(name)
        subject = f"user:{user.name}"
        if self._actor.name == subject:
            raise InvalidOption("user", user.name, "somebody else than you")
        async with self._actor.doing("user.remove", subject, tenant_id=user.tenant_id):
            return await self._users.remove(user.name)

    def _check(self, scopes: tuple[Scope, ...], tenant_id: str | None) -> None:
        """Who came in while nobody was named yet must be able to let others in afterwards."""
        checked_tenant(tenant_id)
        first = self._actor.name == LOCAL.actor
        if first and (Scope.ADMIN not in scopes or tenant_id is not None):
            raise InvalidOption(
                "scopes", ", ".join(scopes), "admin, of no tenant, for the first one of all"
            )
