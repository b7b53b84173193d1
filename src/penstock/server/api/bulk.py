"""One action on all jobs that a filter finds."""

from msgspec.structs import replace
from pydantic import ConfigDict, Field

from penstock.client.operating.bulk import MOST, BulkAction
from penstock.server.api.filters import JobSelection
from penstock.server.api.models import Document, JobId
from penstock.server.api.router import api_router
from penstock.server.guard import MayOperate
from penstock.server.problems import Refusal
from penstock.server.state import Here

router = api_router("/api/jobs", "jobs")


class NewBulk(Document):
    """What to do, and to which jobs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "cancel", "filter": {"type": "send_mail"}, "dry_run": True},
            ]
        }
    )

    action: BulkAction
    filter: JobSelection = Field(
        description="Which jobs; at least one word. Jobs in a state that does not allow the "
        "action are left out.",
        json_schema_extra={"minProperties": 1},
    )
    dry_run: bool = Field(False, description="Only count.")
    before: JobId | None = Field(None, description="The `next` of an answer before.")
    limit: int = Field(10_000, ge=1, le=MOST, description="At most so many jobs.")


class BulkDone(Document):
    """How many jobs were found, and what became of them."""

    action: BulkAction
    dry_run: bool
    found: int
    done: int
    refused: int = Field(description="Those that changed meanwhile, so that the action failed.")
    next: str | None = Field(description="Send it as `before` to go on; absent when all is done.")


@router.post("/bulk", operation_id="act_on_jobs")
async def act_on_jobs(server: Here, caller: MayOperate, bulk: NewBulk) -> BulkDone:
    """Cancel, pause, resume or requeue all jobs that fit, the newest first; or count them."""
    if not bulk.filter.model_fields_set:
        raise Refusal(422, "Say which jobs: the filter is empty.", field="filter")
    where = replace(bulk.filter.filter(caller), before=bulk.before)
    operator = server.operator(caller).bulk
    act = operator.count if bulk.dry_run else operator.act
    answer = await act(bulk.action, where, bulk.limit)
    return BulkDone(
        action=bulk.action,
        dry_run=bulk.dry_run,
        found=answer.found,
        done=answer.done,
        refused=answer.refused,
        next=answer.before,
    )
