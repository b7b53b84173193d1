"""Erasing what belongs to a tenant or a person, for administrators of the whole installation."""

from pydantic import ConfigDict, Field

from penstock.operate.erase import erase
from penstock.server.api.models import Document, Text
from penstock.server.api.router import api_router
from penstock.server.guard import MayAdmin
from penstock.server.state import Here

router = api_router("/api/erasures", "erasures")


class Erasure(Document):
    """Whose traces are to go: a tenant's, a person's, or a person's within a tenant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tenant": "acme"}]})

    tenant: Text | None = None
    person: Text | None = None


class Erased(Document):
    """How much was erased, by what it was: jobs, schedules, tables of extensions."""

    erased: dict[str, int] = Field(examples=[{"jobs": 12, "schedules": 1}])


@router.post("", operation_id="erase", status_code=200)
async def erase_all(server: Here, caller: MayAdmin, whose: Erasure) -> Erased:
    """Erase jobs with their history, schedules and rows of extensions; refused while some run."""
    actor = server.operator(caller).actor
    found = await erase(server.app, tenant=whose.tenant, person=whose.person, actor=actor)
    return Erased(erased=found.parts)
