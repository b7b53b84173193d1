"""The first page: what runs, what waits, how fast it goes, and what is wrong."""

from typing import Annotated, Literal

from fastapi import Query
from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from penstock.server.dashboard.charts import stack
from penstock.server.dashboard.concerns import standing_of
from penstock.server.dashboard.overview_charts import SPANS, figures_of
from penstock.server.dashboard.places import places_of
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import ReadVisit
from penstock.store.contract import QueueDepth

router = page_router()

RUNNING_SHOWN = 6
TYPES_SHOWN = 12
WORKERS_SHOWN = 10
QUEUES_SHOWN = 12
Span = Annotated[Literal["10m", "1h", "24h", "7d"], Query()]


class DepthBar(Struct, frozen=True):
    """A queue: its depth, and the same as a bar."""

    depth: QueueDepth
    bar: Markup


@router.get("/")
async def overview(visit: ReadVisit, span: Span = "1h") -> Response:
    """The whole installation; who belongs to a tenant goes to its jobs."""
    if visit.caller.tenant_id is not None:
        return visit.redirect("jobs")
    stats = await visit.server.observer.over(SPANS[span])
    store, settings = visit.server.app.store, visit.server.app.settings
    seen = await visit.server.glance.get()
    workers = await store.workers.list()
    return await visit.page(
        "overview.html",
        "",
        span=span,
        spans=list(SPANS),
        figures=figures_of(stats),
        types_shown=TYPES_SHOWN,
        seen=seen,
        standing=standing_of(seen.firing, seen.checks, places_of(settings.alerts)),
        totals=_totals(seen.depths),
        queues=depth_bars(_fullest(seen.depths)),
        more_queues=max(0, len(seen.depths) - QUEUES_SHOWN),
        running=await store.reader.running(RUNNING_SHOWN),
        workers=workers[:WORKERS_SHOWN],
        more_workers=max(0, len(workers) - WORKERS_SHOWN),
        slos=stats.slos,
        oldest_ms=max((depth.oldest_queued_ms or 0 for depth in seen.depths), default=0),
    )


def depth_bars(depths: list[QueueDepth]) -> list[DepthBar]:
    """Queues with bars that can be compared; the fullest fills its whole width."""
    fullest = max((_size(depth) for depth in depths), default=0)
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
    chosen = sorted(depths, key=_size, reverse=True)[:QUEUES_SHOWN]
    return sorted(chosen, key=lambda depth: depth.queue)


def _size(depth: QueueDepth) -> int:
    return depth.queued + depth.in_progress + depth.pending + depth.failed + depth.paused


def _totals(depths: list[QueueDepth]) -> dict[str, int]:
    names = ("queued", "in_progress", "pending", "failed", "paused")
    return {name: sum(getattr(depth, name) for depth in depths) for name in names}
