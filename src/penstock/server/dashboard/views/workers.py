"""The workers: what they do, how they fare, and which of them fell silent."""

from collections.abc import Sequence

from msgspec import Struct
from starlette.responses import Response

from penstock.server.dashboard.paging import PageNumber, piece
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import WholeReading
from penstock.store.contract import WorkerInfo

router = page_router()


class Crew(Struct, frozen=True):
    """The living workers taken together, and how many are silent."""

    alive: int
    silent: int
    running: int
    concurrency: int
    cpu_percent: float
    memory_mb: float


@router.get("/workers")
async def workers(visit: WholeReading, page: PageNumber = 1) -> Response:
    """All known workers, the freshest first, and the types that none of them runs."""
    register = visit.server.app.store.workers
    found = await register.list()
    return await visit.page(
        "workers.html",
        "workers",
        piece=piece(found, page),
        crew=crew_of(found),
        unserved=unserved(await register.waiting_types(), found),
    )


def crew_of(workers: Sequence[WorkerInfo]) -> Crew:
    """What the workers are and take in all."""
    alive = [worker for worker in workers if worker.alive]
    return Crew(
        alive=len(alive),
        silent=len(workers) - len(alive),
        running=sum(worker.running for worker in alive),
        concurrency=sum(worker.concurrency for worker in alive),
        cpu_percent=sum(worker.cpu_percent for worker in alive),
        memory_mb=sum(worker.memory_mb for worker in alive),
    )


def unserved(waiting: dict[str, int], workers: Sequence[WorkerInfo]) -> dict[str, int]:
    """Types with queued jobs that no living worker knows."""
    known = {name for worker in workers if worker.alive for name in worker.types}
    return {name: count for name, count in sorted(waiting.items()) if name not in known}
