"""The audit log: who did what to which thing."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from penstock.model.clock import milliseconds
from penstock.operate.actor import own_tenant
from penstock.operate.documents import entry_document
from penstock.server.access.identity import Identity
from penstock.server.api.models import Document, Moment, PageSize, Word
from penstock.server.api.router import api_router
from penstock.server.guard import MayRead
from penstock.server.state import Here
from penstock.store.contract import AuditFilter

router = api_router("/api/audit", "audit")


class AuditQuery(BaseModel):
    """Everything an entry can be looked for by."""

    model_config = ConfigDict(extra="forbid")

    actor: Word | None = Field(None, description="Such as `token:01J…` or `user:ann`.")
    action: Word | None = Field(None, description="`job` finds `job.cancel` too.")
    subject: Word | None = Field(None, description="Such as `job:01J…`.")
    tenant: Word | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    before: int | None = Field(None, ge=1, lt=1 << 53, description="The `next` of the page before.")
    limit: PageSize = 50

    def filter(self, caller: Identity) -> AuditFilter:
        """The same for the store, within what the caller may see."""
        return AuditFilter(
            actor=self.actor,
            action=self.action,
            subject=self.subject,
            tenant_id=own_tenant(caller.tenant_id, self.tenant),
            since=None if self.since is None else milliseconds(self.since),
            until=None if self.until is None else milliseconds(self.until),
            before=self.before,
            limit=self.limit,
        )


class AuditEntry(Document):
    """One entry; its hash covers it and the hash of the entry before."""

    seq: int
    at: Moment
    actor: str
    action: str
    subject: str
    tenant_id: str
    details: dict[str, Any] = Field(description="Ids, counts and keyed hashes, never contents.")
    previous: str
    hash: str


class AuditPage(Document):
    """Some entries, newest first, and where to go on."""

    entries: list[AuditEntry]
    next: int | None = Field(description="Pass it as `before` for the next page.")


@router.get("", operation_id="list_audit")
async def list_audit(
    server: Here, caller: MayRead, query: Annotated[AuditQuery, Query()]
) -> AuditPage:
    """A page of the audit log, newest first; a caller bound to a tenant sees its own."""
    found = await server.app.store.audit.find(query.filter(caller))
    entries = [AuditEntry.model_construct(**entry_document(each)) for each in found]
    following = found[-1].seq if len(found) == query.limit else None
    return AuditPage.model_construct(entries=entries, next=following)
