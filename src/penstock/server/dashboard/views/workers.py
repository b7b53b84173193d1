"""The workers: what they do, how they fare, and which of them fell silent."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query
from msgspec import Struct
from starlette.responses import Response

from penstock.server.dashboard.render import Find, PageNumber, named, piece
from penstock.server.dashboard.request import ReadAllVisit
from penstock.server.dashboard.route import page_router
from penstock.store.contract import WorkerInfo
from penstock.upkeep.sweeps import unserved

router = page_router()

State = Annotated[Literal["alive", "silent"], Query()]


class Crew(Struct, frozen=True):
    """The living workers taken together, and how many are silent."""

    alive: int
    silent: int
    running: int
    concurrency: int
    cpu_percent: float
    memory_mb: float


@router.get("/workers")
async def workers(
    visit: ReadAllVisit, page: PageNumber = 1, state: State | None = None, find: Find = ""
) -> Response:
    """All known workers, the freshest first, and the types that none of them runs."""
    register = visit.server.app.store.workers
    found = await register.list()
    chosen = [worker for worker in found if state in (None, _state(worker))]
    return await visit.page(
        "workers.html",
        "workers",
        state=state,
        find=find,
        piece=piece(named(find, chosen, _names), page),
        crew=crew_of(found),
        unserved=unserved(await register.waiting_types(), found),
    )


def _names(worker: WorkerInfo) -> str:
    return f"{worker.name} {worker.node}"


def _state(worker: WorkerInfo) -> str:
    return "alive" if worker.alive else "silent"


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
