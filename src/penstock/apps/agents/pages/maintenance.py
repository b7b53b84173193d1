"""Quotas, exports and deletions in the dashboard."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.agents.access import actor_of, agents_of, given, named_tenant, number
from penstock.apps.agents.api.maintenance import (
    ExportToStart,
    enqueue_deletion,
    enqueue_export,
    visible_deletions,
)
from penstock.apps.agents.maintenance.quotas import (
    EVERY,
    Action,
    Measure,
    Period,
    Quota,
    State,
    Usage,
    amount,
)
from penstock.extension import Request
from penstock.model.errors import InvalidOption
from penstock.model.wording import money, short

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

TENANTS = 30
SHOWN = 50
STATES = {
    State.OPEN: ("running", "within"),
    State.WARNED: ("warning", "nearly used up"),
    State.THROTTLED: ("warning", "throttled"),
    State.BLOCKED: ("critical", "blocked"),
}
BARS = {
    State.OPEN: "in-good",
    State.WARNED: "in-warn",
    State.THROTTLED: "in-warn",
    State.BLOCKED: "in-bad",
}
EXPORTED = {"running": "in_progress", "done": "completed"}
DELETED = {"requested": "queued", "erasing": "in_progress", "done": "completed"}


class Bar(Struct, frozen=True, kw_only=True):
    """What a tenant has used of something, in words and as a part of what it may."""

    usage: Usage
    used: str
    most: str
    percent: float
    bar: str
    colour: str
    words: str


async def show_quotas(request: Request) -> dict[str, Any]:
    """Show what tenants may use, and how much of it they have used."""
    told = given(request, "tenant", "after")
    after = told.pop("after")
    quotas = agents_of(request).quotas
    tenant = named_tenant(request, told["tenant"] or None)
    tenants = [tenant] if tenant is not None else await _tenants(request.app, after)
    rows = [(name, [_bar(each) for each in await quotas.usage(name)]) for name in tenants]
    everybody = [] if request.tenant else [q for q in await quotas.list() if q.tenant_id == EVERY]
    return {
        "rows": rows,
        "everybody": [(quota, _amount(quota.measure, quota.most)) for quota in everybody],
        "given": told,
        "after": after,
        "following": tenants[-1] if len(tenants) == TENANTS else None,
        "measures": list(Measure),
        "periods": list(Period),
        "actions": list(Action),
        "bound": request.tenant is not None,
    }


async def change_quota(request: Request) -> str:
    """Set a quota, or take it away."""
    form, quotas = request.form, agents_of(request).quotas
    tenant, measure = form.get("tenant", ""), form.get("measure", "")
    actor = actor_of(request)
    match form.get("action", ""):
        case "set":
            most = number(form, "most")
            if most is None:
                raise InvalidOption("most", "nothing", "a number from 0 on")
            done = form.get("then", "") or "block"
            async with actor.doing(
                "quota.set", f"quota:{measure}", tenant_id=tenant, most=most, then=done
            ):
                quota = await quotas.set(
                    tenant, measure, most, period=form.get("period") or None, action=done
                )
            return f"{_whose(tenant)} may use {_told(quota)}."
        case "remove":
            async with actor.doing("quota.remove", f"quota:{measure}", tenant_id=tenant):
                await quotas.remove(tenant, measure)
            return f"{_whose(tenant)} has no quota of {measure} any more."
        case other:
            raise InvalidOption("action", other, "set or remove")


async def show_exports(request: Request) -> dict[str, Any]:
    """List exports and deletions, the newest first."""
    told = given(request, "tenant")
    tenant = named_tenant(request, told["tenant"] or None)
    return {
        "exports": await agents_of(request).exports.list(tenant, SHOWN),
        "deletions": await visible_deletions(request, SHOWN),
        "given": told,
        "exported": EXPORTED,
        "deleted": DELETED,
        "bytes": _bytes,
        "bound": request.tenant is not None,
    }


async def start(request: Request) -> str:
    """Start an export or a deletion, or delete an export."""
    form = request.form
    tenant, user = form.get("tenant") or None, form.get("user") or None
    match form.get("action", ""):
        case "export":
            told = ExportToStart(kind=form.get("kind", ""), tenant=tenant, user_id=user)
            await enqueue_export(request, told)
            return "The export has begun; it appears here."
        case "drop":
            export_id = form.get("export", "")
            async with actor_of(request).doing("export.delete", f"export:{export_id}"):
                await agents_of(request).exports.delete(export_id, tenant=request.tenant)
            return "The export is deleted, with its file."
        case other:
            raise InvalidOption("action", other, "export or drop")


async def show_erase(request: Request) -> dict[str, Any]:
    """Show the form that erases somebody."""
    return {"bound": request.tenant is not None, "tenant": request.tenant or "", "live": False}


async def erase(request: Request) -> str:
    """Erase a tenant or a person; the name is to be typed twice."""
    form = request.form
    tenant, user = request.tenant or form.get("tenant") or None, form.get("user") or None
    named = user or tenant or ""
    if not named or form.get("sure", "") != named:
        raise InvalidOption("name", form.get("sure", ""), "the name of who is to be erased, again")
    await enqueue_deletion(request, tenant, user)
    return "The deletion has begun; its certificate appears among the exports."


async def count_exceeded(app: "Penstock") -> int:
    """Count the quotas that are used up."""
    return int(await app.read(lambda tx: tx.agents.value("exceeded_quotas", ())))


async def _tenants(app: "Penstock", after: str) -> list[str]:
    bindings = {"after": after, "limit": TENANTS}
    rows = await app.read(lambda tx: tx.agents.rows("quota_tenants", bindings))
    return [str(name) for (name,) in rows]


def _bar(usage: Usage) -> Bar:
    share = usage.share
    colour, words = STATES[usage.state]
    most = usage.quota.most if usage.quota is not None else None
    return Bar(
        usage=usage,
        used=_amount(usage.measure, usage.used),
        most="" if most is None else _amount(usage.measure, most),
        percent=0.0 if share is None else min(100.0, 100 * share),
        bar=BARS[usage.state],
        colour="quiet" if usage.quota is None else colour,
        words="no limit" if usage.quota is None else words,
    )


def _amount(measure: Measure, value: float) -> str:
    if measure is Measure.MONEY:
        return money(value)
    return _bytes(value) if measure is Measure.STORAGE else short(round(value))


def _bytes(size: float | None) -> str:
    """A number of bytes as people say it: `912 bytes`, `1.2 MB`."""
    if size is None:
        return "–"
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,.0f} bytes"


def _told(quota: Quota) -> str:
    again = "" if quota.period is Period.TOTAL else f" a {quota.period}"
    noun = "" if quota.measure in (Measure.MONEY, Measure.STORAGE) else f" {quota.measure}"
    return f"{amount(quota.measure, quota.most)}{noun}{again}"


def _whose(tenant: str) -> str:
    return "Every other tenant" if tenant == EVERY else f"Tenant {tenant!r}"
