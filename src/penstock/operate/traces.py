"""What names a tenant or a person beside their jobs: tokens, users, limits, pauses, alerts.

The records are those of the server and of alerts, known here by their kinds alone.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.json import decode

from penstock.model.controls import LimitScope, PauseScope
from penstock.operate.notices import TYPE as NOTICE
from penstock.store.contract import JobFilter, Record
from penstock.store.contract.records import every

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Erasing

PAGE = 500


async def erase_traces(app: "Penstock", whose: "Erasing") -> Counter[str]:
    """Erase what names a tenant or a person; how much, by what it was."""
    erased: Counter[str] = Counter()
    names = await _erase_users(app, whose)
    erased["users"] += len(names)
    erased["logins"] += await _remove(app, "session", lambda told: told.get("user") in names)
    if whose.person is None and whose.tenant is not None:
        tenant = whose.tenant
        erased["tokens"] += await _remove(
            app, "token", lambda told: told.get("tenant_id") == tenant
        )
        erased += await _erase_controls(app, tenant)
    named = whose.tenant if whose.person is None else whose.person
    erased += await _erase_alerts(app, named or "")
    return +erased


async def _erase_users(app: "Penstock", whose: "Erasing") -> set[str]:
    """Those of a tenant, or the one with the person's name."""
    names: set[str] = set()

    def is_theirs(told: dict[str, Any]) -> bool:
        within = whose.tenant is None or told.get("tenant_id") == whose.tenant
        theirs = within and whose.person in (None, told.get("name"))
        names.update({str(told.get("name"))} if theirs else ())
        return theirs

    await _remove(app, "user", is_theirs)
    return names


async def _remove(app: "Penstock", kind: str, means: Callable[[dict[str, Any]], bool]) -> int:
    found = [
        record.name async for record in every(app.store.records, kind) if _meant(record, means)
    ]
    return sum([await app.store.records.remove(kind, name) for name in found])


def _meant(record: Record, means: Callable[[dict[str, Any]], bool]) -> bool:
    told = decode(record.document)
    return isinstance(told, dict) and means(told)


async def _erase_controls(app: "Penstock", tenant: str) -> Counter[str]:
    erased: Counter[str] = Counter()
    controls = app.store.controls
    for state in await controls.limits():
        limit = state.limit
        if (limit.scope, limit.name) == (LimitScope.TENANT, tenant):
            erased["limits"] += await controls.remove_limit(limit.scope, limit.name, limit.kind)
    for pause in await controls.pauses():
        if (pause.scope, pause.name) == (PauseScope.TENANT, tenant):
            erased["pauses"] += await controls.resume(pause.scope, pause.name)
    return erased


async def _erase_alerts(app: "Penstock", named: str) -> Counter[str]:
    """Alerts that name them, which stand again if there is reason, and notices on their way."""
    erased: Counter[str] = Counter()
    word = re.compile(rf"(?<![\w-]){re.escape(named)}(?![\w-])")
    async for record in every(app.store.records, "alert"):
        if word.search(record.document):
            erased["alerts"] += await app.store.records.remove("alert", record.name)
    wanted = JobFilter(type=NOTICE, text=named, limit=PAGE)
    while jobs := [job for job in await app.store.reader.find(wanted) if word.search(job.payload)]:
        ids = [job.id for job in jobs if job.status.terminal]
        if not ids:
            break  # they are about to be delivered
        erased["notices"] += await app.store.upkeep.erase(ids)
    return erased
