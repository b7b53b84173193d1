"""The first page: what runs, what waits, how fast it goes, and what is wrong."""

from typing import Annotated, Literal

from fastapi import Query
from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from penstock.server.access.scopes import Scope
from penstock.server.dashboard.charts import stack
from penstock.server.dashboard.figures import SPANS, figures_of
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import Reading
from penstock.server.observe import Watching
from penstock.store.contract import QueueDepth

router = page_router()

RUNNING_SHOWN = 6
TYPES_SHOWN = 12
WORKERS_SHOWN = 20
Span = Annotated[Literal["10m", "1h", "24h", "7d"], Query()]


class QueueRow(Struct, frozen=True):
    """A queue: its depth, and the same as a bar."""

    depth: QueueDepth
    delayed: int
    bar: Markup


@router.get("/")
async def overview(visit: Reading, observer: Watching, span: Span = "1h") -> Response:
    """The whole installation; who belongs to a tenant goes to its jobs."""
    if visit.caller.tenant_id is not None:
        return visit.redirect("jobs")
    stats, slos = await observer.over(SPANS[span])
    store = visit.server.app.store
    seen = await visit.desk.glance()
    workers = await store.workers.list()
    return await visit.page(
        "overview.html",
        "",
        span=span,
        spans=list(SPANS),
        figures=figures_of(stats),
        types_shown=TYPES_SHOWN,
        seen=seen,
        totals=_totals(seen.depths),
        queues=queue_rows(seen.depths),
        running=await store.reader.running(RUNNING_SHOWN),
        workers=workers[:WORKERS_SHOWN],
        more_workers=max(0, len(workers) - WORKERS_SHOWN),
        may_enqueue=visit.caller.may(Scope.ENQUEUE),
        slos=slos,
        alerts=seen.firing,
    )


def queue_rows(depths: list[QueueDepth]) -> list[QueueRow]:
    """Queues with bars that can be compared; the fullest fills its whole width."""
    fullest = max((_size(depth) for depth in depths), default=0)
    return [
        QueueRow(
            depth,
            depth.pending,
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


def _size(depth: QueueDepth) -> int:
    return depth.queued + depth.in_progress + depth.pending + depth.failed + depth.paused


def _totals(depths: list[QueueDepth]) -> dict[str, int]:
    names = ("queued", "in_progress", "pending", "failed", "paused")
    return {name: sum(getattr(depth, name) for depth in depths) for name in names}
