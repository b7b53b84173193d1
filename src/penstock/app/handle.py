"""What an enqueue gives back: the job's id, and the way to its result."""

import asyncio
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from penstock.app.lookups import check_patience
from penstock.model.errors import JobCancelled, JobFailed, ResultTimeout, UnknownType
from penstock.model.job import Job
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from penstock.app.admission import Estimate
    from penstock.app.job_type import JobType

R = TypeVar("R")


class Jobs(Protocol):
    """What handles ask of an application, be it here or behind a server."""

    @property
    def types(self) -> "dict[str, JobType[..., ..., Any]]":
        """Every registered name and alias, and its type."""
        ...

    async def get(self, job_id: str) -> Job:
        """The job, or JobNotFound."""
        ...

    async def get_many(self, ids: "Sequence[str]") -> list[Job]:
        """Return the jobs that exist, in the order of their ids."""
        ...

    def watch(self, *job_ids: str) -> "AsyncGenerator[Job, None]":
        """Yield each job now and whenever it changes, until all have ended."""
        ...

    async def cancel(self, job_id: str, reason: str = ...) -> Status:
        """Cancel a waiting job, or ask a running one to stop; return its status afterwards."""
        ...

    async def cancel_many(self, ids: "Sequence[str]", reason: str = ...) -> dict[str, Status]:
        """Cancel jobs that all exist; each one's status afterwards."""
        ...


class JobHandle(Generic[R]):
    """A job that was enqueued; `created` is false when a unique key found an earlier one."""

    __slots__ = ("_app", "_estimate", "_type", "created", "id")

    def __init__(
        self,
        app: Jobs,
        job_id: str,
        type_: "JobType[..., ..., R] | None",
        created: bool,
        estimate: "Estimate | None" = None,
    ) -> None:
        self._app = app
        self._type = type_
        self._estimate = estimate
        self.id = job_id
        self.created = created

    def __repr__(self) -> str:
        name = self._type.name if self._type else "?"
        return f"<job {self.id} of type {name!r}>"

    @property
    def estimated_start(self) -> "datetime | None":
        """When it will start, by what waits ahead and how fast that goes; `None` if unknown."""
        if self._estimate is None or not self.created:
            return None
        return self._estimate.start()

    async def get(self) -> Job:
        """Return the job as it is now."""
        return await self._app.get(self.id)

    async def cancel(self, reason: str = "cancelled by the caller") -> Status:
        """Cancel it, or ask it to stop if it runs."""
        return await self._app.cancel(self.id, reason)

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the value; raises JobFailed, JobCancelled or ResultTimeout."""
        seen: Job | None = None
        try:
            async with asyncio.timeout(check_patience(timeout)):
                async for job in self._app.watch(self.id):
                    seen = job
        except TimeoutError:
            status = seen.status if seen else None
            raise ResultTimeout(self.id, timeout or 0, status) from None
        if seen is None:
            raise JobNotFound(self.id)
        return self.value(seen)

    def value(self, job: Job) -> R:
        """The value of the job once it has ended; raises JobFailed or JobCancelled."""
        if job.status is Status.CANCELLED:
            raise JobCancelled(job.id, job.error)
        if job.status is not Status.COMPLETED:
            raise JobFailed(job.id, job.status, job.error)
        try:
            return self._decoded(job)
        except (msgspec.DecodeError, ValueError) as error:
            problem = f"its stored result does not fit the handler's annotation ({error})"
            raise JobFailed(job.id, job.status, problem) from error

    def _decoded(self, job: Job) -> R:
        type_ = self._type or self._app.types.get(job.type)
        if type_ is None:
            raise UnknownType(job.type, sorted({each.name for each in self._app.types.values()}))
        return type_.decode_result(job.result)
