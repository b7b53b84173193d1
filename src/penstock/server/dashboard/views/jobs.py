"""The list of jobs: filters in the URL, a page at a time, live."""

from msgspec import Struct
from starlette.responses import Response

from penstock.model.states import Status
from penstock.server.api.filters import JobQuery
from penstock.server.dashboard.actions import ACTIONS
from penstock.server.dashboard.asked import Asked, asked
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import ReadVisit, Visit
from penstock.store.contract import Found, QueueDepth
from penstock.store.contract.rollups import HOUR_MS

router = page_router()

NOTHING = Found([], None)
MORE_FIELDS = frozenset(
    {"tag", "category", "tenant", "workspace", "created_by", "schedule", "worker", "parent"}
    | {"since", "until", "payload"}
)


class Tab(Struct, frozen=True):
    """A status to look at, and how many jobs have it, where that is known."""

    status: str
    count: int | None
    here: bool


@router.get("/jobs")
async def jobs(visit: ReadVisit) -> Response:
    """A page of jobs, newest first."""
    wanted = asked(JobQuery, visit.request.query_params.multi_items())
    found = NOTHING
    if wanted.query is not None:
        found = await visit.server.app.store.reader.search(wanted.query.filter(visit.caller))
    return await visit.page(
        "jobs.html",
        "jobs",
        asked=wanted,
        values=wanted.given,
        problems=wanted.problems,
        found=found,
        tabs=await _tabs(visit, wanted),
        types=sorted(visit.server.app.types),
        actions=ACTIONS,
        more_open=not MORE_FIELDS.isdisjoint(wanted.filters),
    )


async def _depths(visit: Visit) -> list[QueueDepth]:
    """What stands in the queues now, as far as the visitor may see it."""
    tenant_id = visit.caller.tenant_id
    if tenant_id is None:
        return (await visit.server.glance.get()).depths
    return (await visit.server.observer.stats.over(HOUR_MS, tenant_id)).queues


async def _tabs(visit: Visit, wanted: Asked[JobQuery]) -> list[Tab]:
    """Every status; counts are those of a queue, or of all of them, if nothing else is asked."""
    counts: dict[str, int] = {}
    if wanted.filters.keys() <= {"status", "queue"}:
        queue = wanted.given.get("queue")
        chosen = [depth for depth in await _depths(visit) if queue in (None, depth.queue)]
        for status in ("pending", "queued", "in_progress", "failed", "paused"):
            counts[status] = sum(getattr(depth, status) for depth in chosen)
    here = wanted.given.get("status", [])
    return [Tab(status, counts.get(status), status in here) for status in Status]
