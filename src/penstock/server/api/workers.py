"""Workers that are, or recently were, alive."""

from pydantic import Field

from penstock.operate.documents import document
from penstock.server.api.models import Document, Moment
from penstock.server.api.router import api_router
from penstock.server.guard import MayReadAll
from penstock.server.state import Here

router = api_router("/api/workers", "workers")


class Worker(Document):
    """A worker as the store last heard of it."""

    owner: str
    name: str
    node: str
    pid: int
    queues: list[str] | None = Field(description="Absent when it serves all of them.")
    types: list[str]
    concurrency: int
    running: int
    completed: int
    failed: int
    cpu_percent: float
    memory_mb: float
    poll_age_ms: int
    max_priority: int | None
    state: str
    declared_queues: list[str] = Field(description="The queues that its types use.")
    started_at: Moment
    heartbeat_at: Moment
    heartbeat_age_ms: int
    alive: bool = Field(description="Whether it was heard of within half a minute.")


class Workers(Document):
    """Return all known workers, the freshest first."""

    workers: list[Worker]


@router.get("", operation_id="list_workers")
async def list_workers(server: Here, _: MayReadAll) -> Workers:
    """Return all known workers, the freshest first."""
    found = await server.app.store.workers.list()
    return Workers.model_construct(
        workers=[Worker.model_construct(**document(each), alive=each.alive) for each in found]
    )
