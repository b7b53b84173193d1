"""Handles on jobs that a server enqueued, followed by server-sent events until they have ended."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from penstock.app.arguments import encode
from penstock.app.handle import JobHandle
from penstock.model.clock import from_iso
from penstock.model.errors import PenstockError
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.model.store_errors import StoreUnavailable
from penstock.remote.wire import Hitch, Wire, not_understood

if TYPE_CHECKING:
    from penstock.app.job_type import JobType
    from penstock.remote.client import Remote

R = TypeVar("R")


class RemoteHandle(JobHandle[R]):
    """A job on a server; its result comes typed if the application is known, else as plain data."""

    __slots__ = ("_starts",)

    def __init__(
        self,
        remote: "Remote",
        job_id: str,
        type_: "JobType[..., ..., R] | None",
        created: bool,
        starts: datetime | None = None,
    ) -> None:
        super().__init__(remote, job_id, type_, created)
        self._starts = starts

    @property
    def estimated_start(self) -> datetime | None:
        """When it will start, as the server saw it; none if unknown."""
        return self._starts

    def _decoded(self, job: Job) -> R:
        type_ = self._type or self._app.types.get(job.type)
        if type_ is None:
            plain: R = msgspec.json.decode(job.result or "null")
            return plain
        return type_.decode_result(job.result)


MOST_STREAMS = 16

Get = Callable[[str], Awaitable[Job]]


class JobEvent(msgspec.Struct, frozen=True):
    """What a server says about a job that has changed."""

    status: Status
    attempts: int
    progress_percent: float | None
    progress_message: str | None
    error: str | None
    at: str
    progress: dict[str, Any] | None = None

    def applied(self, job: Job) -> Job:
        """The job as it stands after this."""
        return replace(
            job,
            status=self.status,
            attempts=self.attempts,
            progress_percent=self.progress_percent,
            progress_message=self.progress_message,
            progress=None if self.progress is None else encode(self.progress),
            error=self.error,
            updated_at=from_iso(self.at),
        )


_EVENT = msgspec.json.Decoder(JobEvent)


async def follow(wire: Wire, get: Get, job_id: str) -> AsyncGenerator[Job, None]:
    """A job now and whenever it changes; it is read whole at first and when it has ended."""
    known: Job | None = None
    patience = wire.patience()
    while True:
        after: float | None = None
        problem: PenstockError = StoreUnavailable(wire.url, "it ended the stream")
        try:
            async with aclosing(_events(wire, job_id)) as events:
                async for event in events:
                    patience = wire.patience()
                    if known is None or event.status.terminal:
                        job = await get(job_id)
                    else:
                        job = event.applied(known)
                    if job != known:
                        yield job
                    if job.status.terminal:
                        return
                    known = job
        except Hitch as hitch:
            problem, after = hitch.error, hitch.after
        if not await patience.again(after):
            raise problem


async def follow_all(wire: Wire, get: Get, ids: Sequence[str]) -> AsyncGenerator[Job, None]:
    """Each job now and whenever it changes, until all have ended; a few are followed at a time."""
    gate = asyncio.Semaphore(MOST_STREAMS)
    told: asyncio.Queue[Job | BaseException | None] = asyncio.Queue()

    async def tell(job_id: str) -> None:
        try:
            async with gate, aclosing(follow(wire, get, job_id)) as jobs:
                async for job in jobs:
                    await told.put(job)
        except Exception as error:
            await told.put(error)
        await told.put(None)

    tasks = [asyncio.create_task(tell(job_id)) for job_id in dict.fromkeys(ids)]
    try:
        left = len(tasks)
        while left:
            said = await told.get()
            if isinstance(said, BaseException):
                raise said
            if said is None:
                left -= 1
            else:
                yield said
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _events(wire: Wire, job_id: str) -> AsyncGenerator[JobEvent, None]:
    async with aclosing(wire.lines(f"jobs/{job_id}/events")) as lines:
        async for line in lines:
            if line.startswith("data: "):
                try:
                    yield _EVENT.decode(line.removeprefix("data: "))
                except msgspec.DecodeError as error:
                    raise not_understood(wire.url, error) from error
