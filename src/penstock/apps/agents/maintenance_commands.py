"""`penstock agents quotas …`: quotas, exports and deletions at the terminal."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from penstock.apps.agents.access import agents_in
from penstock.apps.agents.maintenance.deletion import Deletion
from penstock.apps.agents.maintenance.quotas import Usage, amount
from penstock.extension import Shown
from penstock.model.clock import from_iso
from penstock.model.documents import document
from penstock.model.errors import InvalidOption
from penstock.model.wording import ago
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

Measured = Annotated[str, "jobs, events, storage, tokens or money."]
Limit = Annotated[int, "At most so many."]


async def quotas(
    app: "Penstock",
    tenant: Annotated[str | None, "What this tenant has used, of what it may."] = None,
) -> Shown:
    """List quotas, or what a tenant has used of its own."""
    if tenant is not None:
        usage = await agents_in(app).quotas.usage(tenant)
        used: Any = [_usage_row(each) for each in usage] or "It has used nothing."
        return Shown(used, document(usage))
    rows = await agents_in(app).quotas.list()
    people: Any = [
        {
            "tenant": row.tenant_id,
            "of": row.measure.value,
            "most": amount(row.measure, row.most),
            "per": row.period.value,
            "then": row.action.value,
        }
        for row in rows
    ]
    return Shown(people or "No quota was set.", document(rows))


async def set_quota(
    app: "Penstock",
    actor: str,
    tenant: Annotated[str, "The tenant; * is every one without a quota of its own."],
    measure: Measured,
    most: Annotated[float, "So much; storage in bytes, money in US dollars."],
    period: Annotated[str | None, "--per", "hour, day, month or total."] = None,
    action: Annotated[str, "--then", "warn, throttle or block."] = "block",
    warn_at: Annotated[float, "Tell of it at this share."] = 0.8,
) -> Shown:
    """Let a tenant use so much of something."""
    async with Operator(app, actor).actor.doing(
        "quota.set", f"quota:{measure}", tenant_id=tenant, most=most, then=action
    ):
        quota = await agents_in(app).quotas.set(
            tenant, measure, most, period=period, action=action, warn_at=warn_at
        )
    told = f"{tenant} may use {amount(quota.measure, quota.most)} of {measure}."
    return Shown(told, document(quota))


async def remove_quota(
    app: "Penstock", actor: str, tenant: Annotated[str, "The tenant."], measure: Measured
) -> Shown:
    """Let a tenant use as much as it likes again, or as everybody may."""
    async with Operator(app, actor).actor.doing(
        "quota.remove", f"quota:{measure}", tenant_id=tenant
    ):
        removed = await agents_in(app).quotas.remove(tenant, measure)
    told = "The quota is removed." if removed else "It had none of its own."
    return Shown(told, {"removed": removed})


async def exports(
    app: "Penstock",
    tenant: Annotated[str | None, "Only those of this tenant."] = None,
    limit: Limit = 30,
) -> Shown:
    """List exports, the newest first."""
    rows = await agents_in(app).exports.list(tenant, limit)
    now = app.store.clock.now()
    people: Any = [
        {
            "export": row.id,
            "kind": row.kind,
            "of": "/".join(filter(None, (row.tenant_id, row.user_id))),
            "state": row.status,
            "bytes": row.bytes,
            "file": row.file,
            "begun": ago(row.created_at, now),
        }
        for row in rows
    ]
    return Shown(people or "Nothing was exported yet.", document(rows))


async def export(
    app: "Penstock",
    actor: str,
    tenant: Annotated[str, "Of this tenant."] = "",
    user: Annotated[str | None, "Of this user, within the tenant or everywhere."] = None,
    audit: Annotated[bool, "The audit log instead of the data."] = False,
    since: Annotated[str | None, "Entries of this time or later: 2026-11-15T03:28Z."] = None,
    until: Annotated[str | None, "Entries before this time."] = None,
    wait: Annotated[float, "Wait so many seconds for it."] = 0,
    out: Annotated[Path | None, "Copy the file here when it is done."] = None,
) -> Shown:
    """Export a tenant's or a user's data, or the audit log; a worker has to be running."""
    if not audit and not (tenant or user):
        raise InvalidOption("export", "nothing", "--tenant or --user, or --audit")
    data: dict[str, Any] = {"userId": user}
    if audit:
        data = {name: from_iso(at) for name, at in (("since", since), ("until", until)) if at}
    name = "audit-export" if audit else "data-export"
    given = {key: value for key, value in data.items() if value is not None}
    async with Operator(app, actor).actor.doing(
        "audit.export" if audit else "data.export", "export", tenant_id=tenant
    ):
        handle = await agents_in(app).enqueue(name, given, tenant=tenant, created_by=actor)
    if not wait and out is None:
        return Shown(f"The export has begun: job {handle.id}", {"job": handle.id})
    result = await handle.result(timeout=wait or 600)
    made = await agents_in(app).exports.get(_member(result, "export_id", "exportId"))
    if out is not None:
        shutil.copyfile(agents_in(app).exports.path(made), out)
        out.chmod(0o600)
    return Shown(f"{out or made.file}, SHA-256 {made.sha256}", document(made))


async def deletions(app: "Penstock", limit: Limit = 30) -> Shown:
    """List deletions, the newest first; a certificate says what there was."""
    rows = await agents_in(app).deletions.list(limit)
    now = app.store.clock.now()
    people: Any = [_deletion_row(row, now) for row in rows] or "Nobody was erased yet."
    return Shown(people, document(rows))


async def erase(
    app: "Penstock",
    actor: str,
    tenant: Annotated[str | None, "All of this tenant, or a user within it."] = None,
    user: Annotated[str | None, "This user, within the tenant or everywhere."] = None,
    yes: Annotated[bool, "--yes", "Erase; without it, only say what would go."] = False,
) -> Shown:
    """Erase a tenant or a user everywhere; a worker has to be running."""
    if tenant is None and user is None:
        raise InvalidOption("erase", "nobody", "--tenant or --user")
    if not yes:
        from penstock.apps.agents.maintenance.deletion import count
        from penstock.apps.agents.maintenance.subject import Subject

        found = await count(app, Subject(tenant=tenant, person=user))
        told = ", ".join(f"{number:,} {name}" for name, number in found.items()) or "Nothing"
        return Shown(f"{told} would go; say --yes to erase.", found)
    async with Operator(app, actor).actor.doing(
        "data.deletion", "deletion", tenant_id=tenant or ""
    ):
        begun = await agents_in(app).deletions.request(tenant=tenant, person=user)
    ids = {"job": begun.job.id, "deletion": begun.id}
    return Shown(f"The deletion has begun: job {begun.job.id}", ids)


def _usage_row(row: Usage) -> dict[str, Any]:
    share = row.share
    return {
        "of": row.measure.value,
        "used": amount(row.measure, row.used),
        "most": "–" if row.quota is None else amount(row.measure, row.quota.most),
        "share": "–" if share is None else f"{share:.0%}",
        "state": row.state.value,
        "period": row.period,
    }


def _deletion_row(row: Deletion, now: int) -> dict[str, Any]:
    whom = row.subject
    named = whom.person or whom.tenant if whom is not None else f"#{row.subject_hash[:12]}"
    return {
        "deletion": row.id,
        "of": named,
        "state": row.status,
        "found": sum(row.found.values()),
        "signed": "yes" if row.certificate else "",
        "when": ago(row.ended_at or row.created_at, now),
    }


def _member(result: Any, name: str, called: str) -> str:
    """A field of a result, which is a record here or a document elsewhere."""
    return str(result[called] if isinstance(result, dict) else getattr(result, name))
