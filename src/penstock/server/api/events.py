"""Following a job: server-sent events until it has ended."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import Request
from msgspec.json import encode
from starlette.responses import StreamingResponse

from penstock.model.clock import iso
from penstock.model.job import Job
from penstock.operate.documents import decoded
from penstock.server.api.router import api_router
from penstock.server.guard import Bearer, MayRead, Presence
from penstock.server.state import Here
from penstock.server.streams import MEDIA_TYPE
from penstock.store.contract import Store

router = api_router("/api/jobs", "jobs")

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events named `state` and `progress`, whose data is a `JobEvent`. The "
        "stream ends after the state in which the job ended, seconds after the caller may no "
        "longer read, and after ten minutes anyway: ask again then.",
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


@router.get(
    "/{job_id}/events",
    operation_id="follow_job",
    responses=STREAM,
    response_class=StreamingResponse,
)
async def follow_job(
    request: Request, server: Here, caller: MayRead, bearer: Bearer, job_id: str
) -> StreamingResponse:
    """Follow a job: its state and its progress, now and whenever they change, until it ends."""
    job = await server.operator(caller).jobs.get(job_id)
    lasts = Presence(request, server, caller, bearer).lasts
    return server.streams.open(caller.actor, events_of(server.app.store, job.id), lasts)


async def events_of(store: Store, job_id: str) -> AsyncGenerator[bytes, None]:
    """What is told of a job, now and whenever it changes."""
    seen: Job | None = None
    async with aclosing(store.reader.watch([job_id])) as changes:
        async for job in changes:
            for event in _told(seen, job):
                yield event
            seen = job


def _told(before: Job | None, job: Job) -> list[bytes]:
    """What to say about a change; nothing if it is about neither state nor progress."""
    names: list[str] = []
    if _progress(job) != ((None, None, None) if before is None else _progress(before)):
        names.append("progress")
    if before is None or (before.status, before.attempts) != (job.status, job.attempts):
        names.append("state")
    data = encode(_data(job))
    return [b"event: " + name.encode() + b"\ndata: " + data + b"\n\n" for name in names]


def _progress(job: Job) -> tuple[float | None, str | None, str | None]:
    return job.progress_percent, job.progress_message, job.progress


def _data(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "status": job.status,
        "attempts": job.attempts,
        "progress_percent": job.progress_percent,
        "progress_message": job.progress_message,
        "progress": decoded(job.progress),
        "error": job.error,
        "at": iso(job.updated_at),
    }
