"""Looking through jobs in pieces, so that neither the server nor the caller waits long."""

import time
from typing import Any

from penstock.model.job import Job
from penstock.store.contract import Found, FoundIds, JobFilter
from penstock.store.contract.payloads import Condition, conditions_of, holds, spellings
from penstock.store.redis import pictures
from penstock.store.redis.courier import Courier
from penstock.store.redis.errors import encoded

LOOKS_AT_ONCE = 200
PIECES = 50
SECONDS = 0.05
"""After so long no further piece is begun with: where a server is slow, a page has fewer."""

_PLAIN = (
    "type", "queue", "category", "tenant_id", "workspace_id", "created_by", "tag", "parent_job_id",
    "schedule_id", "lease_owner", "since", "until",
)  # fmt: skip


async def search(courier: Courier, where: JobFilter) -> Found:
    """A page of jobs, newest first."""
    looks = _Looks(courier, where, "jobs")
    found: list[Job] = []
    while looks.left and len(found) < where.limit:
        jobs = map(pictures.job, await looks.next(where.limit - len(found)))
        found += [job for job in jobs if holds(job.payload, looks.conditions)]
    return Found(found, looks.before)


async def search_ids(courier: Courier, where: JobFilter) -> FoundIds:
    """The ids of such a page."""
    looks = _Looks(courier, where, "payloads" if where.payload else "ids")
    found: list[str] = []
    while looks.left and len(found) < where.limit:
        some = await looks.next(where.limit - len(found))
        if looks.conditions:
            some = [job_id for job_id, payload in some if holds(payload, looks.conditions)]
        found += [job_id.decode() for job_id in some]
    return FoundIds(found, looks.before)


class _Looks:
    """One call's looks, each going on from the one before; `left` is 0 when there are no more."""

    def __init__(self, courier: Courier, where: JobFilter, shown: str) -> None:
        self._courier = courier
        self._after = where.before or ""
        self._shown = shown
        self._seq = b""
        self.before: str | None = where.before
        self.left = PIECES
        self._began = time.monotonic()
        self.conditions = conditions_of(where.payload)
        self._wanted = _wanted(where, self.conditions)

    async def next(self, limit: int) -> list[Any]:
        """What the next piece has, so many at most."""
        asked = (self._wanted, self._after, self._seq, limit, LOOKS_AT_ONCE, self._shown)
        answer: tuple[bytes, bytes, list[Any]] = await self._courier.call("search_jobs", *asked)
        self._seq, last, found = answer
        in_time = time.monotonic() - self._began < SECONDS
        self.left = self.left - 1 if self._seq and in_time else 0
        self.before = last.decode() if self._seq else None
        return found


def _wanted(where: JobFilter, conditions: list[Condition]) -> bytes:
    """What `lua/matching.lua` takes."""
    wanted: dict[str, Any] = {
        name: value for name in _PLAIN if (value := getattr(where, name)) is not None
    }
    if where.states:
        wanted["statuses"] = where.states
    if where.text:
        wanted["texts"] = spellings(where.text)
    if conditions:
        wanted["payload"] = conditions
    return encoded(wanted)
