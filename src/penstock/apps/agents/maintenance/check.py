"""Looking at what tenants have used: storage is weighed, what is lost given back, states set."""

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.apps.agents.maintenance.quotas import (
    Measure,
    Period,
    State,
    current,
    give_back_in,
    quotas_of,
)
from penstock.apps.agents.maintenance.standing import Standing, act_on, noted

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

LOST_MS = 3_600_000
"""A reservation that is older is of a call that nobody will settle."""
FORGOTTEN_MS = 86_400_000
"""Who settles a lost one after so long is not heard."""
KEPT_MS = {Period.HOUR: 7 * 86_400_000, Period.DAY: 400 * 86_400_000}
PAGE = 500


async def give_back_lost(app: "Penstock", tenant: str | None) -> int:
    """Give back what was reserved for calls that were never settled; how many they were."""
    before = app.store.clock.now() - LOST_MS
    asked = {"before": before, "tenant": tenant, "limit": PAGE}
    lost = 0
    while rows := await app.read(lambda tx: tx.agents.rows("lost_reservations", asked)):

        def work(tx: Any, rows: list[tuple[str, str]] = rows) -> None:
            for reservation_id, owner in rows:
                give_back_in(tx, reservation_id, owner)

        await app.transact(work)
        lost += len(rows)
    forgotten = app.store.clock.now() - FORGOTTEN_MS
    await app.transact(lambda tx: tx.agents.run("forget_reservations", (forgotten,)))
    return lost


async def forget_old(app: "Penstock") -> None:
    """Forget what was used in hours and days that are long over; months are kept."""
    now = app.store.clock.now()

    def work(tx: Any) -> None:
        for period, kept in KEPT_MS.items():
            before, _ = current(period, now - kept)
            tx.agents.run("forget_old_usage", {"before": before})

    await app.transact(work)


async def weigh(app: "Penstock", tenant: str | None) -> Counter[str]:
    """The bytes that a tenant's, or each one's, rows take in extensions' tables, and its files."""
    store = app.table_store("agents")
    here = [app.extensions.find(name) for name in await store.versions()]
    tables = [table for each in here if each and each.tables for table in each.tables.tables]
    found = Counter(await store.sizes(tables, tenant))
    files = await app.read(lambda tx: tx.agents.rows("bytes_of_files", {"tenant": tenant}))
    for owner, size in files:
        found[str(owner)] += int(size)
    return found


async def check(app: "Penstock", tenant: str | None) -> Counter[str]:
    """Bring all figures and states up to date; how many tenants are in which state."""
    weights = await weigh(app, tenant)
    tenants = {tenant} if tenant else {*weights, *await _known(app)} - {"*"}
    states: Counter[str] = Counter()
    for each in sorted(tenants):
        standings, worst = await app.transact(
            partial(_judge, tenant=each, bytes_=weights.get(each, 0))
        )
        states[worst] += 1
        await act_on(app, standings)
    return states


async def _known(app: "Penstock") -> set[str]:
    def question(tx: Any) -> set[str]:
        named = (*tx.agents.rows("usage_tenants"), *tx.agents.rows("standing_tenants"))
        return {str(name) for (name,) in named}

    return await app.read(question)


def _judge(tx: Any, tenant: str, bytes_: int) -> tuple[list[Standing], State]:
    """Write down what a tenant stores and how it stands; what changed, and the worst of it."""
    tx.agents.run("set_usage", (tenant, Measure.STORAGE, Period.TOTAL, bytes_))
    quotas = quotas_of(tx, tenant)
    changed: list[Standing] = []
    worst = State.OPEN
    for measure in Measure:
        quota = quotas.get(measure)
        if quota is None:
            changed += _forgotten(tx, tenant, measure)
            continue
        period, _ = current(quota.period, tx.now)
        used = float(tx.agents.value("quota_used", (tenant, measure, period)))
        standing = noted(tx, quota, tenant, period, used)
        changed += [] if standing is None else [standing]
        worst = max(worst, quota.state(used), key=list(State).index)
    return changed, worst


def _forgotten(tx: Any, tenant: str, measure: Measure) -> list[Standing]:
    """What is left of a quota that was taken away, to be undone."""
    row = tx.agents.row("standing", (tenant, measure))
    if row is None:
        return []
    tx.agents.run("forget_standing", (tenant, measure))
    return [Standing.open(tenant, measure, limited=bool(row[2]), now=tx.now)]
