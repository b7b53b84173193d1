"""Handles on jobs that a server enqueued."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from penstock.client.flow_handle import FlowHandle
from penstock.client.handle import JobHandle
from penstock.model.job import Job
from penstock.model.states import Status

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.flow import Plan
    from penstock.client.job_type import JobType
    from penstock.client.remote.remote import Remote

R = TypeVar("R")


class RemoteHandle(JobHandle[R]):
    """A job on a server; its result comes typed if the application is known, else as plain data."""

    __slots__ = ("_remote", "_starts")

    def __init__(
        self,
        remote: "Remote",
        job_id: str,
        type_: "JobType[..., ..., R] | None",
        created: bool,
        starts: datetime | None = None,
    ) -> None:
        # What a handle does with its application, this one does with the methods of the same name.
        super().__init__(cast("Penstock", remote), job_id, type_, created)
        self._remote = remote
        self._starts = starts

    @property
    def estimated_start(self) -> datetime | None:
        """When it will start, as the server saw it; none if unknown."""
        return self._starts

    def _changes(self) -> AsyncIterator[Job]:
        return self._remote.watch(self.id)

    def _decoded(self, job: Job) -> R:
        type_ = self._type or self._remote.types.get(job.type)
        if type_ is None:
            plain: R = msgspec.json.decode(job.result or "null")
            return plain
        return type_.decode_result(job.result)


class RemoteFlowHandle(FlowHandle[R]):
    """A flow on a server."""

    __slots__ = ("_get_many", "_remote")

    def __init__(
        self,
        app: "Penstock",
        plan: "Plan",
        jobs: "list[JobHandle[Any]]",
        *,
        get_many: Callable[[Sequence[str]], Awaitable[list[Job]]],
    ) -> None:
        super().__init__(app, plan, jobs)
        self._remote = cast("Remote", app)
        self._get_many = get_many

    async def cancel(self, reason: str = "cancelled by the caller") -> dict[str, Status]:
        """Cancel what waits and ask what runs to stop; each job's status afterwards."""
        return {job_id: await self._remote.cancel(job_id, reason) for job_id in self.ids}

    def _changes(self, ids: list[str]) -> AsyncGenerator[Job, None]:
        return self._remote.watch(*ids)

    async def _found(self) -> list[Job]:
        return await self._get_many(self.ids)
