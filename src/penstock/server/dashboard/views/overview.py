"""The first page: what runs, what waits, how fast it goes, and what is wrong."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import Query, Request
from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from penstock.extension import Concern
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.operate.controls import QueueState, queue_states
from penstock.operate.health import Check, HealthStatus
from penstock.server.dashboard.charts import SPANS, figures_of, stack
from penstock.server.dashboard.request import ReadVisit, Visit
from penstock.server.dashboard.route import page_router
from penstock.server.guard import Presence
from penstock.server.summary import Summary
from penstock.store.contract import JobFilter, QueueDepth, Window, WorkerInfo

PLACES: Mapping[str, str] = {
    "workers": "workers",
    "queues": "queues",
    "dead_letters": "dead",
    "followers": "",
}
"""Where the rows behind a check are shown."""

SUBJECTS: Mapping[str, str] = {
    "workers": "Workers",
    "queues": "Queues",
    "dead_letters": "Dead letters",
    "followers": "Followers",
}


class Standing(Struct, frozen=True):
    """How the installation is, in one word, and why."""

    status: str
    concerns: list[Concern]


def standing_of(concerns: Sequence[Concern], checks: Mapping[str, Check]) -> Standing:
    """As well as the worst of them; what a concern tells of a page, nothing tells again."""
    told = {concern.about for concern in concerns}
    found = [
        concern
        for concern in concerns
        if concern.about or not concern.path or concern.path not in told
    ]
    found += [
        Concern(check.status.value, SUBJECTS[name], check.detail, PLACES[name])
        for name, check in checks.items()
        if check.status is not HealthStatus.HEALTHY and (PLACES[name] or name) not in told
    ]
    grave = any(concern.status in ("critical", "unhealthy") for concern in found)
    worst = HealthStatus.UNHEALTHY if grave else HealthStatus.DEGRADED
    return Standing(worst.value if found else HealthStatus.HEALTHY.value, found)


router = page_router()


@router.get("/live")
async def live(request: Request, visit: ReadVisit) -> StreamingResponse:
    """Says `changed` at most once a second."""
    server, caller = visit.server, visit.caller
    lasts = Presence(request, server, caller).lasts
    return server.streams.open(caller.actor, server.live.events(), lasts)


RUNNING_SHOWN = 6
TYPES_SHOWN = 12
WORKERS_SHOWN = 10
QUEUES_SHOWN = 12
Span = Annotated[Literal["10m", "1h", "24h", "7d"], Query()]


class DepthBar(Struct, frozen=True):
    """A queue: its depth, and the same as a bar."""

    depth: QueueDepth
    bar: Markup


class Whole(Struct, frozen=True):
    """What is shown only to who may see the whole installation."""

    seen: Summary
    standing: Standing
    workers: list[WorkerInfo]
    more_workers: int


@router.get("/")
async def overview(
    visit: ReadVisit, span: Span | None = None, types: Literal["all"] | None = None
) -> Response:
    """The whole installation; who belongs to a tenant sees what is its own."""
    tenant_id = visit.caller.tenant_id
    chosen = span or await _fitting_span(visit)
    stats = await visit.server.observer.over(SPANS[chosen], tenant_id)
    whole = await _whole(visit) if tenant_id is None else None
    known = queue_states(stats.queues, (), ()) if whole is None else whole.seen.queues
    states = _with_used(known, stats.types)
    depths = [state.depth for state in states]
    figures = figures_of(stats)
    return await visit.page(
        "overview.html",
        "",
        span=chosen,
        spans=list(SPANS),
        figures=figures,
        total_jobs=stats.total_jobs,
        types=figures.types if types == "all" else _chosen_types(figures.types),
        whole=whole,
        dead=stats.dead_letters if whole is None else whole.seen.dead,
        totals=_totals(depths),
        queues=depth_bars(_fullest(depths)),
        more_queues=max(0, len(depths) - QUEUES_SHOWN),
        pauses={state.depth.queue: state.pause for state in states if state.pause},
        running=await _running(visit),
        slos=stats.slos,
        oldest_ms=max((depth.oldest_queued_ms or 0 for depth in depths), default=0),
    )


async def _fitting_span(visit: Visit) -> str:
    """The shortest span that holds all of the last hour; the shortest with anything, before that.

    A new installation is not shown as an empty hour, nor one that works at night as an idle one.
    """
    shortest, hour, *longer = SPANS
    for span in (hour, *longer):
        stats = await visit.server.observer.stats.over(SPANS[span], visit.caller.tenant_id)
        if not stats.total.executions:
            continue
        early = stats.at - SPANS[shortest]
        recent = all(not point.executions for point in stats.series if point.at < early)
        return shortest if span == hour and recent else span
    return shortest


def _with_used(known: list[QueueState], windows: list[Window]) -> list[QueueState]:
    """The queues that are known now, and those in which something ran in the span."""
    names = {state.depth.queue for state in known}
    return [
        *known,
        *(
            state
            for state in queue_states((), (), (), (), windows)
            if state.depth.queue not in names
        ),
    ]


def _chosen_types(types: list[Window]) -> list[Window]:
    """The busiest types, and all that fail; one alone is not hidden behind a link."""
    chosen = [row for n, row in enumerate(types) if n < TYPES_SHOWN or row.failed or row.dead]
    return types if len(types) - len(chosen) == 1 else chosen


async def _whole(visit: Visit) -> Whole:
    server = visit.server
    seen = await server.summary.get()
    workers = await server.app.store.workers.list()
    return Whole(
        seen=seen,
        standing=standing_of(seen.concerns, seen.checks),
        workers=workers[:WORKERS_SHOWN],
        more_workers=max(0, len(workers) - WORKERS_SHOWN),
    )


async def _running(visit: Visit) -> list[Job]:
    """The jobs that have run for longest; of a tenant's, some of those that run."""
    reader, tenant_id = visit.server.app.store.reader, visit.caller.tenant_id
    if tenant_id is None:
        return await reader.running(RUNNING_SHOWN)
    own = JobFilter(tenant_id=tenant_id, statuses=(Status.IN_PROGRESS,), limit=RUNNING_SHOWN)
    return (await reader.search(own)).jobs


def depth_bars(depths: list[QueueDepth]) -> list[DepthBar]:
    """Queues with bars that can be compared; the fullest fills its whole width."""
    fullest = max((depth.jobs for depth in depths), default=0)
    return [
        DepthBar(
            depth,
            stack(
                [
                    ("in_progress", depth.in_progress),
                    ("queued", depth.queued),
                    ("pending", depth.pending),
                    ("failed", depth.failed),
                    ("paused", depth.paused),
                ],
                fullest,
            ),
        )
        for depth in depths
    ]


def _fullest(depths: list[QueueDepth]) -> list[QueueDepth]:
    """As many as a first page holds: the fullest, by name."""
    chosen = sorted(depths, key=lambda depth: depth.jobs, reverse=True)[:QUEUES_SHOWN]
    return sorted(chosen, key=lambda depth: depth.queue)


def _totals(depths: list[QueueDepth]) -> dict[str, int]:
    names = ("queued", "in_progress", "pending", "failed", "paused")
    return {name: sum(getattr(depth, name) for depth in depths) for name in names}
