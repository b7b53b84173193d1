"""Who is asking."""

from msgspec import Struct

from penstock.server.access.scopes import Scope, including


class Identity(Struct, frozen=True, kw_only=True):
    """A caller that was let in.

    `actor` is what the audit log calls it. `tenant_id` binds it to one tenant; None sees all of
    them. `csrf` is set for browsers, whose forms must send it back.
    """

    actor: str
    scopes: tuple[Scope, ...]
    tenant_id: str | None = None
    csrf: str | None = None

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope, or one that includes it."""
        return scope in including(self.scopes)


LOCAL = Identity(actor="local", scopes=(Scope.ADMIN,))
"""Whoever reaches a server that listens on this machine only and knows no credentials."""
