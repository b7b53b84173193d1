"""Questions about jobs on Redis."""

from collections.abc import AsyncGenerator, Sequence
from heapq import nsmallest

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
from penstock.store.contract.find import find
from penstock.store.contract.watch import watch
from penstock.store.redis import pictures, search
from penstock.store.redis.courier import Courier
from penstock.store.redis.paging import page
from penstock.store.redis.signals import Signals
from penstock.store.redis.standing import standing

IDS_AT_ONCE = 1_000
OWNERS_AT_ONCE = 100


class RedisReader:
    """`JobReader` on Redis."""

    def __init__(self, courier: Courier, signals: Signals) -> None:
        self._courier = courier
        self._signals = signals

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        found: list[Job] = []
        for first in range(0, len(ids), IDS_AT_ONCE):
            some = await self._courier.call("get_jobs", *ids[first : first + IDS_AT_ONCE])
            found += [pictures.job(picture) for picture in some]
        return found

    async def find(self, where: JobFilter) -> list[Job]:
        """A page of jobs, newest first."""
        return await find(self.search, where)

    async def search(self, where: JobFilter) -> Found:
        """A page of jobs, newest first, after a bounded number of looks."""
        return await search.search(self._courier, where)

    async def search_ids(self, where: JobFilter) -> FoundIds:
        """The ids of such a page."""
        return await search.search_ids(self._courier, where)

    async def running(self, limit: int = 50) -> list[Job]:
        """Jobs under a lease, the longest running first."""
        began = await self._began()
        longest = nsmallest(limit, began, key=lambda job_id: (began[job_id], job_id))
        return [job for job in await self.get(longest) if job.status is Status.IN_PROGRESS]

    async def _began(self) -> dict[str, float]:
        """When every job under a lease began; those that have not are last."""
        [owners] = await self._courier.ask(("SMEMBERS", self._courier.prefix + "owners"))
        began: dict[str, float] = {}
        cursor = b"0"
        while owners:
            asked = owners[:OWNERS_AT_ONCE]
            done, cursor, found = await self._courier.call("running_jobs", cursor, *asked)
            began |= {job_id.decode(): float(at or "inf") for job_id, at in found}
            owners = owners[done:]
        return began

    async def executions(self, job_id: str) -> list[Execution]:
        """A job's executions, oldest first."""
        key = f"{self._courier.prefix}job:{job_id}"
        now, [fields] = await self._courier.look(("HGETALL", key))
        return pictures.executions(job_id, fields, now)

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The latest lines its handler kept."""
        key = f"{self._courier.prefix}logs:{job_id}"
        [lines] = await self._courier.ask(("LRANGE", key, -limit, -1))
        return [pictures.log_line(line) for line in lines]

    async def dependencies(self, job_id: str, limit: int = 1000) -> Dependencies:
        """The edges of a job in both directions."""
        parents, children = await self._courier.call("dependencies", job_id, limit)
        return Dependencies(
            [pictures.dependency(row) for row in parents],
            [pictures.dependency(row) for row in children],
        )

    async def waiting(self, after: str | None = None, limit: int = 1000) -> list[Job]:
        """A page of all jobs that have not ended and do not run."""
        asked = ("waiting_jobs", after or "")
        return [pictures.job(p) for p in await page(self._courier, *asked, limit=limit)]

    async def standing(self, job_id: str) -> Standing | None:
        """All that decides whether a job runs now."""
        return await standing(self._courier, job_id)

    def watch(self, ids: Sequence[str]) -> AsyncGenerator[Job, None]:
        """Each job now and whenever it changes, until all are terminal."""
        return watch(self.get, self._signals.subscribe, ids)
