"""Quotas, exports and deletions over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from penstock.apps.agents.access import actor_of, agents_of, ms, named_tenant
from penstock.apps.agents.maintenance.deletion import (
    Certificate,
    Deletion,
    DeletionNotFound,
    Deletions,
    Requested,
)
from penstock.apps.agents.maintenance.exports import Export
from penstock.apps.agents.maintenance.quotas import Quota, Usage
from penstock.extension import Request
from penstock.model.documents import document, documented
from penstock.model.errors import InvalidOption

Limit = Annotated[int, Meta(ge=1, le=500)]
CHUNK = 1 << 18

QuotaDocument: Any = documented(Quota)
UsageDocument: Any = documented(Usage, "QuotaUsage")
ExportDocument: Any = documented(Export)
DeletionDocument: Any = documented(Deletion)


class QuotaList(Struct, kw_only=True):
    """What was set for tenants; those of the tenant `*` hold for every other one."""

    quotas: list[QuotaDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedQuotas(Struct, kw_only=True):
    """Whose quotas are asked for."""

    tenant: str | None = None


class UsageList(Struct, kw_only=True):
    """What a tenant has used, of what it may."""

    usage: list[UsageDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedUsage(Struct, kw_only=True):
    """Whose usage is asked for."""

    tenant: str | None = None


class QuotaToSet(Struct, kw_only=True, forbid_unknown_fields=True):
    """How much a tenant may use of something, and what happens then."""

    most: float
    period: Annotated[str | None, Meta(description="hour, day, month or total.")] = None
    warn_at: float = 0.8
    action: Annotated[str, Meta(description="warn, throttle or block.")] = "block"
    throttle: str = "60/min"


class ExportList(Struct, kw_only=True):
    """Exports, the newest first."""

    exports: list[ExportDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedExports(Struct, kw_only=True):
    """Which exports are asked for."""

    tenant: str | None = None
    limit: Limit = 50


class ExportToStart(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to export: the `data` of a tenant or a user, or the `audit` log of a span of time."""

    kind: str = "data"
    tenant: str | None = None
    user_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Enqueued(Struct, kw_only=True):
    """The job that does it."""

    job_id: str


class DeletionBegun(Struct, kw_only=True):
    """The job that does it, and the deletion, whose certificate says when it is done."""

    job_id: str
    deletion_id: str


class DeletionList(Struct, kw_only=True):
    """Deletions, the newest first; one that is done says whom it was about by a hash alone."""

    deletions: list[DeletionDocument]  # pyright: ignore[reportInvalidTypeForm]


class WantedDeletions(Struct, kw_only=True):
    """Which deletions are asked for."""

    limit: Limit = 50


class DeletionToStart(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whom to erase everywhere: a tenant, a user within it, or a user of any."""

    tenant: str | None = None
    user_id: str | None = None


CertificateToVerify = Certificate


class Verification(Struct, kw_only=True):
    """Whether a certificate is as this installation has signed it."""

    valid: bool


async def list_quotas(request: Request) -> dict[str, Any]:
    """List what was set for tenants."""
    wanted: WantedQuotas = request.query
    tenant = named_tenant(request, wanted.tenant)
    found = await agents_of(request).quotas.list()
    return {"quotas": document([each for each in found if tenant in (None, each.tenant_id)])}


async def read_quota_usage(request: Request) -> dict[str, Any]:
    """What a tenant has used of everything, in the period that it is in now."""
    wanted: WantedUsage = request.query
    tenant = named_tenant(request, wanted.tenant) or ""
    return {"usage": document(await agents_of(request).quotas.usage(tenant))}


async def set_quota(request: Request) -> Any:
    """Let a tenant use so much; the tenant `*` is every one that has no quota of its own."""
    told: QuotaToSet = request.body
    tenant, measure = request.path["tenant"], request.path["measure"]
    async with actor_of(request).doing(
        "quota.set", f"quota:{measure}", tenant_id=tenant, most=told.most, then=told.action
    ):
        quota = await agents_of(request).quotas.set(
            tenant,
            measure,
            told.most,
            period=told.period,
            warn_at=told.warn_at,
            action=told.action,
            throttle=told.throttle,
        )
    return document(quota)


async def remove_quota(request: Request) -> dict[str, bool]:
    """Let a tenant use as much as it likes again, or as everybody may."""
    tenant, measure = request.path["tenant"], request.path["measure"]
    async with actor_of(request).doing("quota.remove", f"quota:{measure}", tenant_id=tenant):
        return {"removed": await agents_of(request).quotas.remove(tenant, measure)}


async def list_exports(request: Request) -> dict[str, Any]:
    """List exports, the newest first."""
    wanted: WantedExports = request.query
    tenant = named_tenant(request, wanted.tenant)
    return {"exports": document(await agents_of(request).exports.list(tenant, wanted.limit))}


async def start_export(request: Request) -> dict[str, str]:
    """Enqueue an export: of a tenant's or a user's data, or of the audit log."""
    told: ExportToStart = request.body
    return {"job_id": await enqueue_export(request, told)}


async def get_export(request: Request) -> Any:
    """One export, and how much it holds."""
    return document(await _export(request))


async def download_export(request: Request) -> AsyncIterator[bytes]:
    """Download the file of an export."""
    export = await _export(request)
    path: Path = agents_of(request).exports.path(export)
    if export.status != "done" or not await asyncio.to_thread(path.is_file):
        raise InvalidOption("export", export.id, "one that is done, and whose file is here")

    async def pieces() -> AsyncIterator[bytes]:
        with await asyncio.to_thread(path.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, CHUNK):
                yield piece

    return pieces()


async def delete_export(request: Request) -> dict[str, bool]:
    """Delete an export with its file."""
    export_id = request.path["export_id"]
    async with actor_of(request).doing("export.delete", f"export:{export_id}"):
        await agents_of(request).exports.delete(export_id, tenant=request.tenant)
    return {"removed": True}


async def list_deletions(request: Request) -> dict[str, Any]:
    """List deletions with their certificates, the newest first."""
    wanted: WantedDeletions = request.query
    return {"deletions": document(await visible_deletions(request, wanted.limit))}


async def start_deletion(request: Request) -> dict[str, str]:
    """Have all that there is of a tenant, or of a user, erased everywhere."""
    told: DeletionToStart = request.body
    begun = await enqueue_deletion(request, told.tenant, told.user_id)
    return {"job_id": begun.job.id, "deletion_id": begun.id}


async def get_deletion(request: Request) -> Any:
    """One deletion: how far it is, and its certificate."""
    deletions, deletion_id = agents_of(request).deletions, request.path["deletion_id"]
    found = await deletions.get(deletion_id)
    if request.tenant is not None and not await _concerns(deletions, found, request.tenant):
        raise DeletionNotFound(deletion_id)
    return document(found)


async def verify_certificate(request: Request) -> dict[str, bool]:
    """Say whether a certificate is as this installation has signed it."""
    return {"valid": await agents_of(request).deletions.verify(request.body)}


async def enqueue_export(request: Request, told: ExportToStart) -> str:
    """Enqueue the job of an export; its id."""
    tenant = named_tenant(request, told.tenant) or ""
    if told.kind not in ("data", "audit"):
        raise InvalidOption("kind", told.kind, "data or audit")
    if told.kind == "data" and not (tenant or told.user_id):
        raise InvalidOption("export", "nothing", "told whose data: a tenant's or a user's")
    name, data = "data-export", dict[str, Any](userId=told.user_id)
    if told.kind == "audit":
        name, data = "audit-export", {"since": ms(told.since), "until": ms(told.until)}
    given = {key: value for key, value in data.items() if value is not None}
    async with actor_of(request).doing(f"{told.kind}.export", "export", tenant_id=tenant):
        return (await agents_of(request).enqueue(name, given, tenant=tenant)).id


async def enqueue_deletion(request: Request, tenant: str | None, person: str | None) -> Requested:
    """Enqueue the job of a deletion. Who is bound to a tenant names it, or people of it."""
    if tenant is None and person is None:
        raise InvalidOption("deletion", "nothing", "told whose data: a tenant's or a user's")
    named = named_tenant(request, tenant)
    async with actor_of(request).doing("data.deletion", "deletion", tenant_id=named or ""):
        return await agents_of(request).deletions.request(tenant=named, person=person)


async def visible_deletions(request: Request, limit: int) -> list[Deletion]:
    """Those that somebody may see: all, or those that are about the tenant they are bound to."""
    deletions = agents_of(request).deletions
    rows = await deletions.list(limit)
    if request.tenant is None:
        return rows
    return [each for each in rows if await _concerns(deletions, each, request.tenant)]


async def _concerns(deletions: Deletions, deletion: Deletion, tenant: str) -> bool:
    """Whether a deletion is a tenant's own; of a person that is known until it is done."""
    if deletion.subject is not None:
        return deletion.subject.tenant == tenant
    certificate = deletion.certificate
    return certificate is not None and await deletions.is_about(certificate, tenant=tenant)


async def _export(request: Request) -> Export:
    return await agents_of(request).exports.get(request.path["export_id"], tenant=request.tenant)
