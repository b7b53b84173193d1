"""The list of jobs: filters in the URL, a page at a time, live, and one action on many of them."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from penstock.model.clock import iso
from penstock.model.ids import is_id
from penstock.model.states import Status
from penstock.model.wording import counted
from penstock.operate.jobs import MOST, Bulk
from penstock.server.api.filters import JobQuery
from penstock.server.dashboard.navigation import ACTIONS, BY_NAME, Action
from penstock.server.dashboard.request import Asked, OperateVisit, ReadVisit, Visit, asked
from penstock.server.dashboard.route import page_router
from penstock.server.problems import Refusal
from penstock.store.contract import Found, QueueDepth
from penstock.store.contract.metrics import HOUR_MS

router = page_router()


@router.post("/jobs/bulk")
async def bulk(visit: OperateVisit) -> Response:
    """Count, and after a yes act: on the jobs that were picked, or on all that match."""
    action = BY_NAME.get(visit.form.get("action"))
    if action is None:
        raise Refusal(422, "Choose what to do with the jobs.")
    if visit.form.get("whom") == "all":
        return await _matching(visit, action)
    picked = [job_id for job_id in dict.fromkeys(visit.form.all("id")) if is_id(job_id)]
    if not picked:
        return visit.back("Select the jobs first.", bad=True, otherwise="jobs")
    if visit.form.get("sure"):
        return _done(visit, action, await visit.operator.jobs.act_on(action.name, picked))
    return await _picked(visit, action, picked)


async def _picked(visit: Visit, action: Action, picked: list[str]) -> Response:
    known = await visit.operator.jobs.known(picked)
    fit = [job for job in known if job.status in action.starts_from]
    hidden = [("whom", "picked"), *(("id", job.id) for job in fit)]
    return await _sure(visit, action, len(fit), hidden, unfit=len(picked) - len(fit), shown=fit)


async def _matching(visit: Visit, action: Action) -> Response:
    items = list(visit.form.fields)
    if not visit.form.get("until"):
        # Jobs that are made after the count are not meant.
        items.append(("until", iso(visit.now + 1)))
    wanted = asked(JobQuery, items)
    if wanted.query is None:
        raise Refusal(422, "The filter cannot be read; go back to the list.")
    where = wanted.query.filter(visit.caller)
    jobs = visit.operator.jobs
    if visit.form.get("sure"):
        return _done(visit, action, await jobs.act(action.name, where))
    fit = await jobs.count(action.name, where)
    hidden = [("whom", "all")]
    for field, value in wanted.filters.items():
        hidden += [(field, each) for each in ([value] if isinstance(value, str) else value)]
    filters = {n: v for n, v in wanted.filters.items() if n != "until" or visit.form.get("until")}
    return await _sure(
        visit,
        action,
        fit.found,
        hidden,
        more=fit.before is not None,
        filters=filters,
    )


async def _sure(
    visit: Visit, action: Action, count: int, hidden: list[tuple[str, str]], **context: Any
) -> Response:
    offered: dict[str, Any] = {"unfit": 0, "shown": [], "more": False, "filters": {}, **context}
    return await visit.page(
        "bulk.html",
        "jobs",
        live=False,
        action=action,
        count=count,
        hidden=hidden,
        most=MOST,
        **offered,
    )


def _done(visit: Visit, action: Action, became: Bulk) -> Response:
    text = f"{counted(became.done, 'job')} {action.done}."
    if became.refused:
        text += f" {became.refused:,} could not be."
    if became.before is not None:
        text += " There are more; do it again."
    return visit.redirect("jobs", text, bad=became.done == 0)


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
        return (await visit.server.summary.get()).depths
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
