"""The audit log: who did what to which thing, and whether the chain holds."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct
from pydantic import ValidationError
from starlette.responses import Response

from penstock.client.journal import Verified
from penstock.model.audit import Entry
from penstock.model.ids import is_id
from penstock.server.api.audit import AuditQuery
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import Reading, Visit, WholeReading
from penstock.store.contract import AuditFilter

router = page_router()

SHOWN = 50
AROUND = 5
TIMES = frozenset({"since", "until"})
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


class Line(Struct, frozen=True):
    """An entry, and the page of its subject, if it has one."""

    entry: Entry
    path: str | None


class Asked(Struct, frozen=True):
    """What was given, as text, and the question made of it; none if something is wrong."""

    given: dict[str, str]
    query: AuditQuery | None
    problems: dict[str, str]

    @property
    def filters(self) -> dict[str, str]:
        """What narrows the list, without the place in it."""
        return {name: value for name, value in self.given.items() if name != "before"}


@router.get("/audit")
async def audit(visit: Reading) -> Response:
    """A page of the log, newest first."""
    wanted = asked(dict(visit.request.query_params))
    entries: list[Entry] = []
    if wanted.query is not None:
        entries = await visit.server.app.store.audit.find(wanted.query.filter(visit.caller))
    return await _page(visit, wanted, entries)


@router.post("/audit/verify")
async def verify(visit: WholeReading) -> Response:
    """Check the whole chain, and show the entries where it breaks."""
    found = await visit.server.journal.verify()
    before = None if found.problem is None else found.problem.seq + AROUND
    where = AuditFilter(before=before, limit=SHOWN)
    entries = await visit.server.app.store.audit.find(where)
    return await _page(visit, Asked({}, None, {}), entries, found)


def asked(fields: dict[str, str]) -> Asked:
    """Read the fields of a URL; empty and unknown ones say nothing."""
    given = {
        name: value.strip()
        for name, value in fields.items()
        if value.strip() and name in AuditQuery.model_fields and name != "limit"
    }
    try:
        read: dict[str, Any] = {name: _read(name, value) for name, value in given.items()}
        return Asked(given, AuditQuery.model_validate(read | {"limit": SHOWN}), {})
    except ValidationError as error:
        problems = {str(each["loc"][0]): each["msg"] for each in error.errors()}
        return Asked(given, None, problems)


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
    visit: Visit, wanted: Asked, entries: list[Entry], verified: Verified | None = None
) -> Response:
    return await visit.page(
        "audit.html",
        "audit",
        live=verified is None,
        asked=wanted,
        lines=[Line(entry, place_of(entry)) for entry in entries],
        following=entries[-1].seq if len(entries) == SHOWN else None,
        verified=verified,
        whole=visit.caller.tenant_id is None,
    )


def _read(name: str, value: str) -> Any:
    """A browser's time has no zone; pages speak UTC."""
    if name not in TIMES:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
