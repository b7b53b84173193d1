"""How tenants stand to their quotas: noted when it changes, told of, and acted on."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct
from msgspec.structs import asdict

from penstock.apps.agents.maintenance.quotas import Measure, Quota, State, amount
from penstock.model.not_found import LimitNotFound

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.agents")


class Standing(Struct, frozen=True, kw_only=True):
    """How a tenant stands to one quota, since it came to stand so."""

    tenant_id: str
    measure: Measure
    period: str
    state: State
    used: float
    limited: bool
    changed_at: int
    quota: Quota | None

    @classmethod
    def open(cls, tenant: str, measure: Measure, *, limited: bool, now: int) -> "Standing":
        """How one stands whose quota was taken away."""
        return cls(
            tenant_id=tenant,
            measure=measure,
            period="",
            state=State.OPEN,
            used=0,
            limited=limited,
            changed_at=now,
            quota=None,
        )


def noted(tx: Any, quota: Quota, tenant: str, period: str, used: float) -> Standing | None:
    """Write down how a tenant stands now; None if it stood so already."""
    state = quota.state(used)
    row = tx.agents.row("standing", (tenant, quota.measure))
    if row is None and state is State.OPEN:
        return None
    if row is not None and tuple(row[:2]) == (period, state):
        tx.agents.run("standing_used", (used, tenant, quota.measure))
        return None
    limited = row is not None and bool(row[2])
    standing = Standing(
        tenant_id=tenant,
        measure=quota.measure,
        period=period,
        state=state,
        used=used,
        limited=limited,
        changed_at=tx.now,
        quota=quota,
    )
    bindings = asdict(standing) | {"limited": int(limited)}
    del bindings["quota"]
    tx.agents.run("set_standing", bindings)
    return standing


async def act_on(app: "Penstock", changed: Iterable[Standing]) -> None:
    """Slow a throttled tenant's jobs down, let others run as they did, and tell of it."""
    for standing in changed:
        throttled = standing.state is State.THROTTLED
        if standing.state is not State.OPEN and standing.quota is not None:
            log.warning(
                f"quota_{standing.state}",
                tenant=standing.tenant_id,
                measure=standing.measure.value,
                used=amount(standing.measure, standing.used),
                most=amount(standing.measure, standing.quota.most),
            )
        if throttled != standing.limited and standing.tenant_id:
            await _limit(app, standing, slow=throttled)


async def _limit(app: "Penstock", standing: Standing, *, slow: bool) -> None:
    """Set or take away the rate of a tenant's jobs; one that somebody else set is left alone."""
    tenant, measure = standing.tenant_id, standing.measure
    if slow and standing.quota is not None:
        there = [
            state
            for state in await app.controls.limits()
            if state.limit.scope == "tenant" and state.limit.name == tenant
        ]
        if any(state.limit.kind == "rate" for state in there):
            return
        await app.controls.set_limit(tenant=tenant, rate=standing.quota.throttle)
    elif await _handed_on(app, tenant):
        pass
    else:
        with suppress(LimitNotFound):
            await app.controls.remove_limit(tenant=tenant, kind="rate")
    await app.transact(lambda tx: tx.agents.run("mark_limited", (int(slow), tenant, measure)))


async def _handed_on(app: "Penstock", tenant: str) -> bool:
    """Whether the tenant is throttled by another quota, whose the limit is from now on."""

    def work(tx: Any) -> bool:
        other = tx.agents.value("throttled_besides", (tenant,))
        if other is not None:
            tx.agents.run("mark_limited", (1, tenant, other))
        return other is not None

    return await app.transact(work)
