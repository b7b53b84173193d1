"""The audit log: who did what to which thing, and whether the chain holds."""

from urllib.parse import quote, urlencode

from msgspec import Struct
from starlette.responses import Response

from penstock.model.audit import Entry
from penstock.model.ids import is_id
from penstock.operate.journal import Verified
from penstock.server.api.audit import AuditQuery
from penstock.server.dashboard.request import Asked, ReadAllVisit, ReadVisit, Visit, asked
from penstock.server.dashboard.route import page_router
from penstock.store.contract import AuditFilter

router = page_router()

SHOWN = 50
AROUND = 5
PLACES = {
    "group": "dead/groups/{}",
    "queue": "jobs?queue={}",
    "type": "jobs?type={}",
    "tenant": "jobs?tenant={}",
    "key": "queues#limits",
    "breaker": "queues#breakers",
    "alert": "alerts/{}",
    "token": "access",
    "user": "access",
}
"""Where a subject is shown, by what it is."""


class EntryRow(Struct, frozen=True):
    """An entry, and the page of its subject, if it has one."""

    entry: Entry
    path: str | None


@router.get("/audit")
async def audit(visit: ReadVisit) -> Response:
    """A page of the log, newest first."""
    wanted = asked(AuditQuery, visit.request.query_params.multi_items())
    entries: list[Entry] = []
    if wanted.query is not None:
        entries = await visit.server.app.store.audit.find(wanted.query.filter(visit.caller))
    return await _page(visit, wanted, entries)


@router.post("/audit/verify")
async def verify(visit: ReadAllVisit) -> Response:
    """Check the whole chain, and show the entries where it breaks."""
    found = await visit.server.journal.verify()
    before = None if found.problem is None else found.problem.seq + AROUND
    where = AuditFilter(before=before, limit=SHOWN)
    entries = await visit.server.app.store.audit.find(where)
    return await _page(visit, Asked[AuditQuery]({}, None, {}), entries, found)


def place_of(entry: Entry) -> str | None:
    """The path of the page that shows what an entry is about; none if there is none."""
    kind, _, name = entry.subject.partition(":")
    if not name:
        return {"jobs": "jobs", "tokens": "access", "users": "access"}.get(kind)
    if kind == "job":
        return f"jobs/{name}" if is_id(name) else None
    if kind == "schedule":
        named = {"name": name, "tenant": entry.tenant_id}
        return f"schedules/show?{urlencode({n: v for n, v in named.items() if v})}"
    place = PLACES.get(kind)
    return None if place is None else place.format(quote(name, safe=""))


async def _page(
    visit: Visit, wanted: Asked[AuditQuery], entries: list[Entry], verified: Verified | None = None
) -> Response:
    most = SHOWN if wanted.query is None else wanted.query.limit
    return await visit.page(
        "audit.html",
        "audit",
        live=verified is None,
        asked=wanted,
        values=wanted.given,
        problems=wanted.problems,
        rows=[EntryRow(entry, place_of(entry)) for entry in entries],
        following=entries[-1].seq if len(entries) == most else None,
        verified=verified,
        whole=visit.caller.tenant_id is None,
    )
