"""Whether what waits fits the types that the server knows."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from penstock.operate.check_payloads import TypeCheck
from penstock.server.api.models import Document
from penstock.server.api.router import api_router
from penstock.server.guard import MayReadAll
from penstock.server.state import Here

router = api_router("/api/payload-check", "jobs")

MOST_EXAMPLES = 100


class Misfit(Document):
    """A job or a schedule that does not fit."""

    id: str = Field(description="The id of the job, or the name of the schedule.")
    problem: str = Field(description="What is wrong with its arguments, in a sentence.")


class TypeFit(Document):
    """What was found of one type."""

    type: str
    known: bool = Field(description="Whether the server has such a type.")
    fitting: int
    unfit: int
    examples: list[Misfit]


class PayloadFit(Document):
    """What was found of all that waits."""

    fits: bool = Field(description="Whether everything that waits can be run.")
    checked: int = Field(description="How many jobs were looked at.")
    jobs: list[TypeFit] = Field(description="Jobs that wait, by type.")
    schedules: list[TypeFit] = Field(description="What schedules will enqueue, by type.")


@router.get("", operation_id="check_payloads")
async def check_payloads(
    server: Here,
    _: MayReadAll,
    examples: Annotated[
        int, Query(ge=0, le=MOST_EXAMPLES, description="How many misfits to name for each type.")
    ] = 3,
) -> PayloadFit:
    """Read every waiting job and schedule, and compare its arguments with its type."""
    found = await server.app.check_payloads(examples=examples)
    return PayloadFit.model_construct(
        fits=found.fits,
        checked=found.checked,
        jobs=[_type(each) for each in found.jobs],
        schedules=[_type(each) for each in found.schedules],
    )


def _type(found: TypeCheck) -> TypeFit:
    examples = [Misfit(id=each.id, problem=each.problem) for each in found.examples]
    return TypeFit(
        type=found.type,
        known=found.known,
        fitting=found.fitting,
        unfit=found.unfit,
        examples=examples,
    )
