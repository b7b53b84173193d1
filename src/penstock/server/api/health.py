"""Whether the server, and everything behind it, is well."""

from typing import Any

from fastapi import Response
from msgspec.json import encode
from pydantic import Field

from penstock.model.errors import PenstockError
from penstock.operate.health import HealthStatus, check_health, ping
from penstock.server.api.models import Document, Moment
from penstock.server.api.router import api_router
from penstock.server.guard import MayReadAll
from penstock.server.problems import AWAY_SECONDS, MEDIA_TYPE, Refusal
from penstock.server.state import Here

router = api_router("", "health")


class HealthCheck(Document):
    """One thing that was looked at."""

    status: HealthStatus
    detail: str
    figures: dict[str, Any] = Field(description="The figures behind it, by name.")


class HealthDetails(Document):
    """The figures that matter most; absent while the store does not answer."""

    live_workers: int | None
    queues: int | None = Field(description="Queues with waiting or running jobs.")
    oldest_queued_ms: int | None
    dead_letters: int | None = Field(description="The open ones.")


class Health(Document):
    """How everything is: as well as the worst of the checks."""

    at: Moment
    status: HealthStatus
    checks: dict[str, HealthCheck] = Field(
        description="By name: store, dispatch (where there is one), workers, queues, dead_letters, "
        "and those of extensions as `extension.check`."
    )
    details: HealthDetails


class Alive(Document):
    """Said by a process that can still answer."""

    status: str = Field(examples=["alive"])


class Ready(Document):
    """Said by a server whose store answers."""

    status: str = Field(examples=["ready"])
    ping_ms: float


_UNHEALTHY = {
    "description": "Unhealthy: the checks say why.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Health"}},
        MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}},
    },
}


@router.get(
    "/api/health",
    operation_id="check_health",
    response_model=Health,
    responses={503: _UNHEALTHY},
)
async def check(server: Here, _: MayReadAll) -> Response:
    """Every check, with its figures; the status is 503 when one of them is unhealthy."""
    found = await check_health(server.app.store, server.app.settings, server.app)
    status = 503 if found.status is HealthStatus.UNHEALTHY else 200
    return Response(encode(found.document()), status, media_type="application/json")


@router.get("/healthz", operation_id="is_alive")
async def is_alive() -> Alive:
    """Whether this process answers at all; for whoever restarts it."""
    return Alive(status="alive")


@router.get("/readyz", operation_id="is_ready")
async def is_ready(server: Here) -> Ready:
    """Whether this server can do its work: the store answers and was not moved away."""
    try:
        seconds = await ping(server.app.store)
    except PenstockError:
        # Not why: the answer is for everybody, and the reason may name an address.
        told = "The store does not answer, or was moved away."
        raise Refusal(503, told, retry_after=AWAY_SECONDS) from None
    return Ready(status="ready", ping_ms=round(seconds * 1_000, 2))
