"""Following a job: server-sent events until it has ended."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

from fastapi import Request
from msgspec.json import encode
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.model.clock import iso
from penstock.model.errors import StoreError
from penstock.model.job import Job
from penstock.server.access.guard import Reader
from penstock.server.api.router import api_router
from penstock.server.problems import Refusal
from penstock.server.state import Here
from penstock.store.contract import Store

router = api_router("/api/jobs", "jobs")

MAX_STREAMS = 1_000
MAX_PER_CALLER = 50
HEARTBEAT_SECONDS = 15.0
LIFE_SECONDS = 600.0
MEDIA_TYPE = "text/event-stream"
FIRST = asyncio.FIRST_COMPLETED
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events named `state` and `progress`, whose data is a `JobEvent`. The "
        "stream ends after the state in which the job ended, and after ten minutes anyway: ask "
        "again then.",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "properties": {
                        "event": {"enum": ["state", "progress"]},
                        "data": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "contentSchema": {"$ref": "#/components/schemas/JobEvent"},
                        },
                    },
                    "required": ["event", "data"],
                }
            }
        },
    }
}


class Streams:
    """How many streams each caller has open."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self.over = asyncio.Event()

    def end(self) -> None:
        """End all of them, so that a server that stops need not wait."""
        self.over.set()

    def open(self, caller: str) -> None:
        """Count one more, or refuse it."""
        if self._open[caller] >= MAX_PER_CALLER:
            raise Refusal(
                429,
                f"You follow {MAX_PER_CALLER} jobs already; close some streams.",
                headers={"Retry-After": "5"},
            )
        if self._open.total() >= MAX_STREAMS:
            raise Refusal(503, f"{MAX_STREAMS:,} streams are open already; come back later.")
        self._open[caller] += 1

    def close(self, caller: str) -> None:
        """Count one less."""
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]

    @property
    def total(self) -> int:
        """How many are open."""
        return self._open.total()


@router.get(
    "/{job_id}/events",
    operation_id="follow_job",
    responses=STREAM,
    response_class=StreamingResponse,
)
async def follow_job(
    request: Request, server: Here, caller: Reader, job_id: str
) -> StreamingResponse:
    """Follow a job: its state and its progress, now and whenever they change, until it ends."""
    job = await server.operator(caller).get(job_id)
    streams: Streams = request.app.state.streams
    streams.open(caller.actor)
    events = events_of(server.app.store, job.id, streams.over)
    return Followed(events, lambda: streams.close(caller.actor))


class Followed(StreamingResponse):
    """A stream that counts until it has ended, however it ends."""

    def __init__(self, events: AsyncGenerator[bytes, None], ended: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type=MEDIA_TYPE, headers=headers)
        self._events = events
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it until the job ends or the client goes."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
            await self._events.aclose()


async def events_of(store: Store, job_id: str, over: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """What changes of a job, with a comment now and then that keeps the connection open."""
    seen: Job | None = None
    # A store that is lost ends the stream: who asks again is told what is wrong with it.
    with suppress(StoreError):
        async with aclosing(_changes(store, job_id, over)) as changes:
            async for job in changes:
                if job is None:
                    yield b": still here\n\n"
                    continue
                for event in _told(seen, job):
                    yield event
                seen = job


async def _changes(
    store: Store, job_id: str, over: asyncio.Event
) -> AsyncGenerator[Job | None, None]:
    """The job whenever it changed, and None when nothing has happened for a while."""
    changes = store.reader.watch([job_id])
    loop = asyncio.get_running_loop()
    until = loop.time() + LIFE_SECONDS
    ended = asyncio.ensure_future(over.wait())
    following: asyncio.Future[Job | None] | None = None
    try:
        while loop.time() < until and not ended.done():
            following = following or asyncio.ensure_future(anext(changes, None))
            either: set[asyncio.Future[Any]] = {following, ended}
            await asyncio.wait(either, timeout=HEARTBEAT_SECONDS, return_when=FIRST)
            if not following.done():
                yield None
                continue
            job, following = following.result(), None
            if job is None:
                return
            yield job
    finally:
        await _called_off(ended, following)


async def _called_off(*waiting: "asyncio.Future[Any] | None") -> None:
    """End what nobody waits for any more."""
    stopping = {each for each in waiting if each is not None and each.cancel()}
    if stopping:
        await asyncio.wait(stopping)


def _told(before: Job | None, job: Job) -> list[bytes]:
    """What to say about a change; nothing if it is about neither state nor progress."""
    names: list[str] = []
    if _progress(job) != ((None, None) if before is None else _progress(before)):
        names.append("progress")
    if before is None or (before.status, before.attempts) != (job.status, job.attempts):
        names.append("state")
    data = encode(_data(job))
    return [b"event: " + name.encode() + b"\ndata: " + data + b"\n\n" for name in names]


def _progress(job: Job) -> tuple[float | None, str | None]:
    return job.progress_percent, job.progress_message


def _data(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "status": job.status,
        "attempts": job.attempts,
        "progress_percent": job.progress_percent,
        "progress_message": job.progress_message,
        "error": job.error,
        "at": iso(job.updated_at),
    }
