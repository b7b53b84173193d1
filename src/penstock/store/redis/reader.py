"""Questions about jobs on Redis."""

import time
from collections.abc import AsyncGenerator, Sequence
from heapq import nsmallest
from typing import Any

from penstock.model.controls import PauseScope, limits_on, names_of, pausable
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import (
    Dependencies,
    Execution,
    Found,
    FoundIds,
    JobFilter,
    LogLine,
    Standing,
)
from penstock.store.contract.reader import (
    PARENTS_SHOWN,
    Condition,
    conditions_of,
    find,
    holds,
    spellings,
)
from penstock.store.contract.store import watch
from penstock.store.redis import documents, upkeep
from penstock.store.redis.claim import look_at_gates, pause
from penstock.store.redis.documents import page
from penstock.store.redis.errors import encoded
from penstock.store.redis.scripts import Scripts
from penstock.store.redis.signals import Signals


async def standing(scripts: Scripts, job_id: str) -> Standing | None:
    """All that decides whether a job runs now."""
    found = await scripts.call("stand", job_id, PARENTS_SHOWN)
    if found is None:
        return None
    now, picture, parents, paused, ahead, tenants, key_holder = found
    job = documents.job(picture)
    lane = (job.queue, job.tenant_id, job.type, job.limit_key)
    gates = await look_at_gates(scripts, names_of(*lane))
    about = pausable(job)
    own = [] if paused is None else [pause(PauseScope.JOB, job.id, paused)]
    return Standing(
        now=int(now),
        job=job,
        waits_for=[documents.dependency(row) for row in parents],
        pauses=[*own, *(held for held in gates.pauses if about[held.scope] == held.name)],
        limits=[gates.state(limit) for limit in limits_on(gates.limits, *lane)],
        breakers=gates.breakers_on(job.type),
        workers=upkeep.known(*await scripts.call("list_workers")),
        ahead=int(ahead),
        tenants=int(tenants),
        key_holder=documents.text(key_holder),
    )


LOOKS_AT_ONCE = 200
PIECES = 50
SECONDS = 0.05
"""After so long no further piece is begun with: where a server is slow, a page has fewer."""

_PLAIN = (
    "type", "queue", "category", "tenant_id", "workspace_id", "created_by", "tag", "parent_job_id",
    "schedule_id", "lease_owner", "since", "until",
)  # fmt: skip


async def search(scripts: Scripts, where: JobFilter) -> Found:
    """A page of jobs, newest first."""
    looks = _Looks(scripts, where, "jobs")
    found: list[Job] = []
    while looks.left and len(found) < where.limit:
        jobs = map(documents.job, await looks.next(where.limit - len(found)))
        found += [job for job in jobs if holds(job.payload, looks.conditions)]
    return Found(found, looks.before)


async def search_ids(scripts: Scripts, where: JobFilter) -> FoundIds:
    """The ids of such a page."""
    looks = _Looks(scripts, where, "payloads" if where.payload else "ids")
    found: list[str] = []
    while looks.left and len(found) < where.limit:
        some = await looks.next(where.limit - len(found))
        if looks.conditions:
            some = [job_id for job_id, payload in some if holds(payload, looks.conditions)]
        found += [job_id.decode() for job_id in some]
    return FoundIds(found, looks.before)


class _Looks:
    """One call's looks, each going on from the one before; `left` is 0 when there are no more."""

    def __init__(self, scripts: Scripts, where: JobFilter, shown: str) -> None:
        self._scripts = scripts
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
        answer: tuple[bytes, bytes, list[Any]] = await self._scripts.call("search_jobs", *asked)
        self._seq, last, found = answer
        in_time = time.monotonic() - self._began < SECONDS
        self.left = self.left - 1 if self._seq and in_time else 0
        self.before = last.decode() if self._seq else None
        return found


def _wanted(where: JobFilter, conditions: list[Condition]) -> bytes:
    """What `lua/parts/matching.lua` takes."""
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


IDS_AT_ONCE = 1_000
OWNERS_AT_ONCE = 100


class RedisReader:
    """`JobReader` on Redis."""

    def __init__(self, scripts: Scripts, signals: Signals) -> None:
        self._scripts = scripts
        self._signals = signals

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        found: list[Job] = []
        for first in range(0, len(ids), IDS_AT_ONCE):
            some = await self._scripts.call("get_jobs", *ids[first : first + IDS_AT_ONCE])
            found += [documents.job(picture) for picture in some]
        return found

    async def find(self, where: JobFilter) -> list[Job]:
        """A page of jobs, newest first."""
        return await find(self.search, where)

    async def search(self, where: JobFilter) -> Found:
        """A page of jobs, newest first, after a bounded number of looks."""
        return await search(self._scripts, where)

    async def search_ids(self, where: JobFilter) -> FoundIds:
        """The ids of such a page."""
        return await search_ids(self._scripts, where)

    async def running(self, limit: int = 50) -> list[Job]:
        """Jobs under a lease, the longest running first."""
        began = await self._began()
        longest = nsmallest(limit, began, key=lambda job_id: (began[job_id], job_id))
        return [job for job in await self.get(longest) if job.status is Status.IN_PROGRESS]

    async def _began(self) -> dict[str, float]:
        """When every job under a lease began; those that have not are last."""
        [owners] = await self._scripts.ask(("SMEMBERS", self._scripts.prefix + "owners"))
        began: dict[str, float] = {}
        cursor = b"0"
        while owners:
            asked = owners[:OWNERS_AT_ONCE]
            done, cursor, found = await self._scripts.call("running_jobs", cursor, *asked)
            began |= {job_id.decode(): float(at or "inf") for job_id, at in found}
            owners = owners[done:]
        return began

    async def executions(self, job_id: str) -> list[Execution]:
        """A job's executions, oldest first."""
        key = f"{self._scripts.prefix}job:{job_id}"
        now, [fields] = await self._scripts.look(("HGETALL", key))
        return documents.executions(job_id, fields, now)

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The latest lines its handler kept."""
        key = f"{self._scripts.prefix}logs:{job_id}"
        [lines] = await self._scripts.ask(("LRANGE", key, -limit, -1))
        return [documents.log_line(line) for line in lines]

    async def dependencies(self, job_id: str, limit: int = 1000) -> Dependencies:
        """The edges of a job in both directions."""
        parents, children = await self._scripts.call("dependencies", job_id, limit)
        return Dependencies(
            [documents.dependency(row) for row in parents],
            [documents.dependency(row) for row in children],
        )

    async def waiting(self, after: str | None = None, limit: int = 1000) -> list[Job]:
        """A page of all jobs that have not ended and do not run."""
        asked = ("waiting_jobs", after or "")
        return [documents.job(p) for p in await page(self._scripts, *asked, limit=limit)]

    async def standing(self, job_id: str) -> Standing | None:
        """All that decides whether a job runs now."""
        return await standing(self._scripts, job_id)

    def watch(self, ids: Sequence[str]) -> AsyncGenerator[Job, None]:
        """Each job now and whenever it changes, until all are terminal."""
        return watch(self.get, self._signals.subscribe, ids)
