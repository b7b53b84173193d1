"""Figures over a window of time, and whether the objectives were met in it."""

from typing import Annotated, Any

from fastapi import Query, Response
from msgspec.structs import asdict
from pydantic import Field

from penstock.operate.actor import own_tenant
from penstock.operate.documents import document
from penstock.operate.stats import SloState
from penstock.server.api.models import Document, Moment, Text
from penstock.server.api.router import api_router, encoded
from penstock.server.guard import MayRead
from penstock.server.state import Here
from penstock.server.stats import PATTERN, window_ms

router = api_router("/api/stats", "stats")

Window = Annotated[
    str,
    Query(pattern=PATTERN, description="How far to look back.", examples=["15m", "1h", "7d"]),
]


class Counted(Document):
    """How executions ended, and how long they and the waiting took."""

    completed: int
    failed: int = Field(description="Those that are retried.")
    cancelled: int
    dead: int = Field(description="Those that became dead letters.")
    snoozed: int
    crashed: int
    lease_expiries: int
    duration_p50_ms: float | None
    duration_p95_ms: float | None
    duration_p99_ms: float | None
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    wait_p99_ms: float | None


class Totals(Counted):
    """The figures of one type in one queue; of all of them where both names are empty."""

    type: str
    queue: str
    span_ms: int
    success_rate: float | None = Field(
        description="Completed jobs among those that completed or became dead letters."
    )
    per_minute: float
    duration_avg_ms: float | None
    duration_max_ms: float | None


class Depth(Document):
    """How much stands in a queue now."""

    queue: str
    pending: int
    queued: int
    in_progress: int
    failed: int
    oldest_queued_ms: int | None
    blocked: int
    paused: int


class Point(Counted):
    """One step of the series."""

    at: Moment


class Objective(Document):
    """A service level objective: what is promised and what was measured."""

    key: str
    name: str
    target: str
    measured: str
    unit: str = Field(description="Of bound and value: `ms`, `share` (of one) or `jobs/min`.")
    above: bool = Field(description="Whether the value must lie above the bound, or below it.")
    bound: float
    value: float | None
    state: SloState


class Stats(Document):
    """What happened in a window of time."""

    at: Moment
    window_ms: int
    step_ms: int = Field(description="The width of the steps of the series.")
    total_jobs: int = Field(
        description="Jobs that completed, were cancelled or died in it, and those there are now."
    )
    total: Totals
    types: list[Totals] = Field(description="One for each type and queue.")
    queues: list[Depth]
    dead_letters: int
    series: list[Point] = Field(description="Oldest first; the step that is not over is left out.")
    slos: list[Objective]


@router.get("", operation_id="read_stats", response_model=Stats)
async def read_stats(
    server: Here, caller: MayRead, window: Window = "1h", tenant: Text | None = None
) -> Response:
    """Throughput, success, durations and waits, per type and queue and over time.

    A caller bound to a tenant is told of its own jobs; others name one, or are told of all.
    """
    whose = own_tenant(caller.tenant_id, tenant)
    found = await server.observer.over(window_ms(window), whose)
    told: dict[str, Any] = document(found)
    told["total"] = asdict(found.total)
    for name in ("types", "queues"):
        told[name] = [asdict(each) for each in getattr(found, name)]
    told["series"] = [document(point) for point in found.series]
    told["slos"] = [asdict(slo) for slo in found.slos]
    return encoded(told)
