"""Which jobs a caller means: the same words in a query, a bulk action and the dashboard's URLs."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, TypeVar

from msgspec.structs import replace
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from penstock.app.lookups import expected
from penstock.model.clock import milliseconds
from penstock.model.job import MAX_IDS
from penstock.model.states import Status
from penstock.operate.actor import own_tenant
from penstock.server.access.identity import Identity
from penstock.server.api.models import JobId, PageSize, Word
from penstock.store.contract import JobFilter

Expected = Annotated[str, Field(max_length=1_000)]


class JobSelection(BaseModel):
    """Everything a job can be looked for by."""

    model_config = ConfigDict(extra="forbid")

    status: list[Status] = Field([], description="One or more of the states.")
    type: Word | None = None
    queue: Word | None = None
    category: Word | None = None
    tenant: Word | None = None
    workspace: Word | None = None
    created_by: Word | None = Field(
        None, description="Who enqueued it, such as `token:01J…` or `user:ann`."
    )
    tag: Word | None = None
    parent: JobId | None = None
    schedule: Word | None = None
    worker: Word | None = Field(None, description="The `owner` of the worker that runs it now.")
    since: AwareDatetime | None = Field(None, description="Made at this time or later.")
    until: AwareDatetime | None = Field(None, description="Made before this time.")
    payload: list[Expected] = Field(
        [], max_length=8, description="`path=value`, such as `user.id=7`; all of them must fit."
    )
    text: str | None = Field(
        None, min_length=2, max_length=200, description="In the id, type, key, error or payload."
    )

    def filter(self, caller: Identity) -> JobFilter:
        """The same for the store, within what the caller may see."""
        tenant = own_tenant(caller.tenant_id, self.tenant)
        return JobFilter(
            statuses=tuple(self.status),
            type=self.type,
            queue=self.queue,
            category=self.category,
            tenant_id=tenant,
            workspace_id=self.workspace,
            created_by=self.created_by,
            tag=self.tag,
            parent_job_id=self.parent,
            schedule_id=self.schedule,
            lease_owner=self.worker,
            since=_moment(self.since),
            until=_moment(self.until),
            payload=tuple(expected(text) for text in self.payload),
            text=self.text,
        )


class JobQuery(JobSelection):
    """A page of the jobs that fit."""

    before: JobId | None = Field(None, description="The `next` of the page before.")
    limit: PageSize = 50

    def filter(self, caller: Identity) -> JobFilter:
        """The same for the store, within what the caller may see."""
        return replace(super().filter(caller), before=self.before, limit=self.limit)


class JobsQuery(JobQuery):
    """The same, or some jobs by their ids."""

    id: list[JobId] = Field(
        [],
        max_length=MAX_IDS,
        description="These jobs, in this order, and no other words; what is not there is left out.",
    )

    @property
    def names_jobs(self) -> bool:
        """Whether jobs are asked for by their ids alone."""
        return bool(self.id) and self.model_fields_set <= {"id", "before", "limit"}


def _moment(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)


T = TypeVar("T")

STEP = 50
MOST_BYTES = 16 << 20

Step = Callable[[str | None, int], Awaitable[tuple[list[T], str | None]]]


async def gathered(
    step: Step[T], before: str | None, limit: int, size_of: Callable[[T], int]
) -> tuple[list[T], str | None]:
    """Rows, a few at a time, until there are enough or they are heavy; and where to go on."""
    rows: list[T] = []
    size = 0
    while True:
        asked = min(STEP, limit - len(rows))
        found, before = await step(before, asked)
        rows += found
        size += sum(map(size_of, found))
        ended = before is None or len(found) < asked
        if ended or len(rows) == limit or size >= MOST_BYTES:
            return rows, before
