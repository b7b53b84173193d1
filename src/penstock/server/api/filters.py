"""Which jobs a caller means: the same words in a query, a bulk action and the dashboard's URLs."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec.json import encode
from msgspec.structs import replace
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from penstock.model.clock import milliseconds
from penstock.model.states import Status
from penstock.server.access.identity import Identity
from penstock.server.api.models import JobId
from penstock.store.contract import JobFilter

MAX_PAGE = 1_000


class JobSelection(BaseModel):
    """Everything a job can be looked for by."""

    model_config = ConfigDict(extra="forbid")

    status: list[Status] = Field([], description="One or more of the states.")
    type: str | None = None
    queue: str | None = None
    category: str | None = None
    tenant: str | None = None
    tag: str | None = None
    parent: JobId | None = None
    schedule: str | None = None
    since: AwareDatetime | None = Field(None, description="Made at this time or later.")
    until: AwareDatetime | None = Field(None, description="Made before this time.")
    payload: list[str] = Field(
        [], max_length=8, description="`path=value`, such as `user.id=7`; all of them must fit."
    )
    text: str | None = Field(
        None, min_length=2, max_length=200, description="In the id, type, key, error or payload."
    )

    def filter(self, caller: Identity) -> JobFilter:
        """The same for the store, within what the caller may see."""
        tenant = self.tenant if caller.tenant_id is None else caller.tenant_id
        return JobFilter(
            statuses=tuple(self.status),
            type=self.type,
            queue=self.queue,
            category=self.category,
            tenant_id=tenant,
            tag=self.tag,
            parent_job_id=self.parent,
            schedule_id=self.schedule,
            since=_moment(self.since),
            until=_moment(self.until),
            payload=tuple(_expected(text) for text in self.payload),
            text=self.text,
        )


class JobQuery(JobSelection):
    """A page of the jobs that fit."""

    before: JobId | None = Field(None, description="The `next` of the page before.")
    limit: int = Field(50, ge=1, le=MAX_PAGE)

    def filter(self, caller: Identity) -> JobFilter:
        """The same for the store, within what the caller may see."""
        return replace(super().filter(caller), before=self.before, limit=self.limit)


def _moment(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)


def _expected(text: str) -> tuple[str, str]:
    path, _, value = text.partition("=")
    return path, _json(value)


def _json(value: str) -> str:
    try:
        found: Any = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        found = value
    return encode(found).decode()
