"""What enqueueing a flow gives back: a handle on the whole."""

import asyncio
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from penstock.client.flow import Ends, Plan, leaves
from penstock.client.handle import JobHandle
from penstock.client.job_type import Partial
from penstock.client.lookups import check_patience
from penstock.model.dependency import EdgeKind, OnFailure
from penstock.model.errors import JobCancelled, JobFailed, JobNotFound, ResultTimeout
from penstock.model.job import Job
from penstock.model.states import Status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from penstock.client.app import Penstock

R = TypeVar("R")


class FlowProgress(Struct, frozen=True):
    """How many jobs of a flow stand where."""

    counts: dict[Status, int]
    total: int

    @property
    def ended(self) -> int:
        """How many have ended, well or not."""
        return sum(count for status, count in self.counts.items() if status.terminal)

    @property
    def percent(self) -> float:
        """How much of the flow has ended, 0 to 100."""
        return 100 * self.ended / self.total


class StepStatus(NamedTuple):
    """How one job of a flow stands."""

    status: Status
    error: str | None


class FlowHandle(Generic[R]):
    """A flow that was enqueued; `jobs` are the handles of its calls in the order written."""

    __slots__ = ("_app", "_places", "_plan", "jobs")

    def __init__(self, app: "Penstock", plan: Plan, jobs: "list[JobHandle[Any]]") -> None:
        self._app = app
        self._plan = plan
        self.jobs = jobs
        self._places = {call.job.id: place for place, call in enumerate(plan.calls)}

    def __repr__(self) -> str:
        names = ", ".join(call.type.name for call in self._plan.calls)
        return f"<flow of {len(self.jobs)} jobs: {names}>"

    @property
    def ids(self) -> list[str]:
        """The ids of its jobs, in the order written."""
        return [job.id for job in self.jobs]

    @property
    def created(self) -> bool:
        """Whether this call created every job of it."""
        return all(job.created for job in self.jobs)

    @property
    def ends(self) -> "list[JobHandle[Any]]":
        """The jobs whose results are the flow's."""
        return [self._handle(call) for call in leaves(self._plan.ends)]

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the last step's value, a list for a group; an error names the step."""
        result: R = self._shaped(self._plan.ends, await self.values(timeout))
        return result

    async def cancel(self, reason: str = "cancelled by the caller") -> dict[str, Status]:
        """Cancel what waits and ask what runs to stop; each job's status afterwards."""
        answers = await self._app.store.jobs.cancel(self.ids, reason)
        return {job_id: Status(status) for job_id, status in answers.items()}

    async def progress(self) -> FlowProgress:
        """How many of its jobs stand where."""
        counts = Counter(step.status for step in await self.statuses())
        return FlowProgress(dict(counts), len(self.jobs))

    async def values(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the results of its ends, by their ids."""
        ended: dict[str, Job] = {}
        ids = [handle.id for handle in self.ends]
        try:
            async with (
                asyncio.timeout(check_patience(timeout)),
                aclosing(self._changes(ids)) as changes,
            ):
                async for job in changes:
                    ended[job.id] = job
                    if job.status.terminal and job.status is not Status.COMPLETED:
                        break
        except TimeoutError:
            late = next(i for i in ids if i not in ended or not ended[i].status.terminal)
            status = ended[late].status if late in ended else None
            raise ResultTimeout(late, timeout or 0, status) from None
        for job in ended.values():
            if job.status.terminal and job.status is not Status.COMPLETED:
                raise await self.failure(job.id)
        for job_id in ids:
            if job_id not in ended:
                raise JobNotFound(job_id)
        return {handle.id: handle.value(ended[handle.id]) for handle in self.ends}

    async def statuses(self) -> list[StepStatus]:
        """How each of its jobs stands, in the order written."""
        found = {job.id: job for job in await self._found()}
        for job_id in self.ids:
            if job_id not in found:
                raise JobNotFound(job_id)
        return [StepStatus(found[i].status, found[i].error) for i in self.ids]

    async def failure(self, job_id: str) -> JobFailed:
        """The error of the step that is to blame, which may be long before the one that ended."""
        statuses = await self.statuses()
        place = self._to_blame(self.ids.index(job_id), statuses)
        status, error = statuses[place]
        said = f"step {place + 1} of {len(self.jobs)}, {self._plan.calls[place].type.name!r}"
        words = f"{said}: {error}" if error else said
        if status is Status.CANCELLED:
            return JobCancelled(self.jobs[place].id, words)
        return JobFailed(self.jobs[place].id, status, words)

    def _changes(self, ids: list[str]) -> "AsyncGenerator[Job, None]":
        """Each of these jobs now and whenever it changes, until all have ended."""
        return self._app.store.reader.watch(ids)

    async def _found(self) -> list[Job]:
        return await self._app.store.reader.get(self.ids)

    def _to_blame(self, place: int, statuses: list[StepStatus]) -> int:
        """Walk up from a job that failed over the parents it failed because of."""
        while True:
            for edge in self._plan.calls[place].job.after:
                above = self._places.get(edge.parent_id)
                if above is None or edge.kind is EdgeKind.COMPLETION:
                    continue
                failed = statuses[above].status in (Status.CANCELLED, Status.DEAD_LETTER)
                if failed and edge.on_failure is not OnFailure.RUN:
                    place = above
                    break
            else:
                return place

    def _handle(self, call: Partial[Any]) -> "JobHandle[Any]":
        return self.jobs[self._places[call.job.id]]

    def _shaped(self, ends: Ends, values: dict[str, Any]) -> Any:
        if isinstance(ends, Partial):
            return values[self._handle(ends).id]
        return [self._shaped(part, values) for part in ends]
