"""The types of jobs about maintenance: quotas, exports, deletions."""

from typing import Any

from msgspec import Struct

from penstock.app.context import Context
from penstock.apps.agents.maintenance import audit, check, deletion, export, exports
from penstock.apps.agents.maintenance.quotas import State
from penstock.apps.agents.maintenance.subject import Subject, check_whose
from penstock.apps.agents.worker import Worker
from penstock.model.errors import InvalidOption, JobsRunning
from penstock.model.outcome import Dead, Snooze

WAIT_SECONDS = 2.0
"""So long a deletion waits for jobs that were asked to stop."""


class QuotaCheckData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Nothing: the job's tenant is looked at, or all of them if it has none."""


class QuotasChecked(Struct, rename="camel", frozen=True, kw_only=True):
    """How many tenants were looked at, and how they stand."""

    checked: int
    warned: int
    throttled: int
    blocked: int
    reservations_released: int


class QuotaCheck(Worker[QuotaCheckData, QuotasChecked]):
    """Weigh what tenants store, give back what was reserved in vain, and set their states."""

    name = "quota-check"

    async def process(self, data: QuotaCheckData, ctx: Context) -> QuotasChecked:
        """Look at the job's tenant, or at all."""
        tenant = ctx.job.tenant_id or None
        released = await check.give_back_lost(ctx.app, tenant)
        await check.forget_old(ctx.app)
        states = await check.check(ctx.app, tenant)
        return QuotasChecked(
            checked=states.total(),
            warned=states[State.WARNED],
            throttled=states[State.THROTTLED],
            blocked=states[State.BLOCKED],
            reservations_released=released,
        )


class AuditExportData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which entries: those of a time, in UTC milliseconds, `until` not included; or all."""

    since: int | None = None
    until: int | None = None


class AuditExported(Struct, rename="camel", frozen=True, kw_only=True):
    """The file, and how far the chain was verified."""

    exported: bool
    export_id: str
    file: str
    entries: int
    verified: int
    head: str
    sha256: str
    bytes: int


class AuditExport(Worker[AuditExportData, AuditExported]):
    """Write the audit log, or a tenant's part of it, to a file, after its chain was verified."""

    name = "audit-export"

    async def process(self, data: AuditExportData, ctx: Context) -> AuditExported:
        """Export the entries of the job's tenant, or all if it has none."""
        app, tenant = ctx.app, ctx.job.tenant_id
        last: int | None = ctx.checkpoint
        if last is None:
            entry = await app.store.audit.last()
            last = entry.seq if entry else 0
            await ctx.save_checkpoint(last)
        part = audit.Part(
            until=last,
            tenant=tenant or None,
            since_at=data.since,
            until_at=data.until,
        )
        begun = await exports.begin(app, ctx.id, "audit", tenant, None, "jsonl")
        try:
            made = await audit.write_audit(app, begun, part)
        except audit.AuditBroken as broken:
            raise Dead(str(broken)) from broken
        await exports.end(app, begun, made)
        return AuditExported(
            exported=True,
            export_id=begun.id,
            file=begun.path.name,
            sha256=made.sha256,
            bytes=made.bytes,
            **made.contents,
        )


class DataExportData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Whose data: that of the job's tenant, or of a user, within it or everywhere."""

    user_id: str | None = None

    def __post_init__(self) -> None:
        check_whose("userId", self.user_id)


class DataExported(Struct, rename="camel", frozen=True, kw_only=True):
    """The archive, and how much of what is in it."""

    exported: bool
    export_id: str
    file: str
    contents: dict[str, int]
    sha256: str
    bytes: int


class DataExport(Worker[DataExportData, DataExported]):
    """Write all that there is of a tenant, or of a user, into one archive with a manifest."""

    name = "data-export"

    async def process(self, data: DataExportData, ctx: Context) -> DataExported:
        """Export what belongs to the job's tenant."""
        app, subject = ctx.app, _subject(ctx, data.user_id)
        begun = await exports.begin(app, ctx.id, "data", ctx.job.tenant_id, data.user_id, "zip")
        made = await export.write_data(app, begun, subject, own_job=ctx.id, at=ctx.job.created_at)
        await exports.end(app, begun, made)
        return DataExported(
            exported=True,
            export_id=begun.id,
            file=begun.path.name,
            contents=made.contents,
            sha256=made.sha256,
            bytes=made.bytes,
        )


class DataDeletionData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Whom to erase: `tenantId`, which has to be the job's own tenant, or a `userId` within it.

    Without a tenant, a user is erased everywhere. `deletionId` is for the job that does it.
    """

    tenant_id: str | None = None
    user_id: str | None = None
    deletion_id: str | None = None

    def __post_init__(self) -> None:
        check_whose("userId", self.user_id)


class DataDeleted(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """Whether it is done, and the certificate if it is."""

    deleted: bool
    deletion_id: str
    reason: str | None = None
    certificate: dict[str, Any] | None = None


class DataDeletion(Worker[DataDeletionData, DataDeleted]):
    """Erase a tenant, or a user, everywhere, and make a certificate of what there was.

    The job that asks for it writes it down, and is erased with the rest by another one.
    """

    name = "data-deletion"

    async def process(self, data: DataDeletionData, ctx: Context) -> DataDeleted:
        """Write a deletion down, or do one that was written down."""
        if data.deletion_id is not None:
            return await self._delete(data.deletion_id, ctx)
        subject = _subject(ctx, data.user_id)
        if data.user_id is None and data.tenant_id != subject.tenant:
            told = "the job's own tenant, to say that all of it is meant"
            raise InvalidOption("tenantId", data.tenant_id, told)
        made = await deletion.request(ctx.app, subject, ctx.id)
        return DataDeleted(deleted=False, deletion_id=made.id, reason="requested")

    async def _delete(self, deletion_id: str, ctx: Context) -> DataDeleted:
        if ctx.job.tenant_id:
            raise InvalidOption("deletionId", deletion_id, "left out: only its own job names it")
        try:
            certificate = await deletion.delete(ctx.app, deletion_id)
        except JobsRunning as running:
            raise Snooze(WAIT_SECONDS, str(running)) from running
        told: dict[str, Any] = deletion.document(certificate)
        return DataDeleted(deleted=True, deletion_id=deletion_id, certificate=told)


def _subject(ctx: Context, user: str | None) -> Subject:
    """Whose data is meant: the tenant is that of the job."""
    if not ctx.job.tenant_id and not user:
        raise InvalidOption("tenant", "", "named by the job, or a userId")
    return Subject(tenant=ctx.job.tenant_id or None, person=user)


WORKERS: tuple[type[Worker[Any, Any]], ...] = (QuotaCheck, AuditExport, DataExport, DataDeletion)
