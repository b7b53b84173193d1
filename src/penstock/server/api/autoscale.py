"""How much there is to do, for whatever starts and stops workers."""

from typing import Annotated

from fastapi import Query
from msgspec.structs import asdict
from pydantic import Field

from penstock.server.api.models import Document, Name
from penstock.server.api.router import api_router
from penstock.server.guard import MayReadAll
from penstock.server.state import Here
from penstock.worker.autoscale import measure

router = api_router("/api/autoscale", "workers")


class Load(Document):
    """Figures for an autoscaler, such as the `metrics-api` scaler of KEDA."""

    queued: int = Field(description="Jobs that could start now.")
    in_progress: int
    wait_seconds: float = Field(
        description="The median wait of jobs that started in the last five minutes."
    )
    cpu_percent: float = Field(description="What live workers use of a core, on average.")
    workers: int = Field(description="Live workers that serve these queues.")


@router.get("", operation_id="read_load")
async def read_load(
    server: Here,
    _: MayReadAll,
    queue: Annotated[
        list[Name] | None, Query(max_length=100, description="Only these queues; all without.")
    ] = None,
) -> Load:
    """The load on all queues or some: the figures that `penstock autoscale` decides by."""
    found = await measure(server.app.store, queues=queue)
    return Load.model_construct(**asdict(found))
