"""Who acts, within which tenant, and the audit log that hears of it."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from penstock.client.journal import Journal
from penstock.model.audit import Entry

if TYPE_CHECKING:
    from penstock.client.app import Penstock


class Acting:
    """One person or program; `tenant_id` binds what it sees and changes to one tenant."""

    def __init__(self, app: "Penstock", actor: str, tenant_id: str | None = None) -> None:
        self.app = app
        self.actor = actor
        self.tenant_id = tenant_id
        self.journal = Journal(app.store)

    @property
    def name(self) -> str:
        """The actor in words: beside the word token, a colon would look like a secret."""
        return self.actor.replace(":", " ", 1)

    def owns(self, tenant_id: str) -> bool:
        """Whether something of a tenant is its business."""
        return self.tenant_id is None or self.tenant_id == tenant_id

    def doing(
        self, action: str, subject: str, *, tenant_id: str | None = None, **details: Any
    ) -> AbstractAsyncContextManager[Entry]:
        """Record an action, then do it; details are ids, counts and names, never contents."""
        tenant = self.tenant_id if tenant_id is None else tenant_id
        return self.journal.doing(
            self.actor, action, subject, tenant_id=tenant or "", details=details
        )
