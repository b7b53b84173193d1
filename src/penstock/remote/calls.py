"""Calls and filters as the API takes them, and enqueueing through a server."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from penstock.app.admission import REJECTED_ABOVE, How, check_wait
from penstock.app.options import AwaitingFields, with_options
from penstock.app.tracing import sending, unpacked
from penstock.model.clock import iso
from penstock.model.errors import InvalidArguments, InvalidOption, QueueFull
from penstock.model.job import MAX_BATCH, OPTIONS, NewJob
from penstock.model.store_errors import NoTransactions
from penstock.remote.wire import Wire

if TYPE_CHECKING:
    from penstock.store.contract import JobFilter


def call_document(job: NewJob) -> dict[str, Any]:
    """A prepared call with all its options; what is not set, its type says over there."""
    return options_document(job, OPTIONS) | {
        "id": job.id,
        "type": job.type,
        "payload": Raw(job.payload),
    }


def options_document(job: NewJob, names: Iterable[str]) -> dict[str, Any]:
    """Those of some options of a job that are set and that callers over the network may say."""
    document: dict[str, Any] = {}
    for option in map(OPTIONS.__getitem__, names):
        value = getattr(job, option.field)
        if value is not None and value != "" and not option.local:
            document[option.name] = option.written(value)
    return document


def named_document(
    job_id: str, type_name: str, payload: str, options: AwaitingFields
) -> dict[str, Any]:
    """A call by name with the options that were given, which are checked here and over there."""
    by = options.get("created_by")
    if by is not None:
        expected = "left out: the server writes down whose token it is"
        raise InvalidOption("created_by", by, expected)
    call = with_options(NewJob(id=job_id, type=type_name), **options)
    arguments = payload_document(type_name, payload)
    return options_document(call, options) | {"id": job_id, "type": type_name, "payload": arguments}


def payload_document(type_name: str, payload: str) -> Raw:
    """Arguments given as JSON text, refused here if they are none; the rest the server checks."""
    try:
        msgspec.json.decode(payload, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidArguments(type_name, "payload", "an object in JSON", str(error)) from error
    return Raw(payload)


_FILTER_NAMES = {
    "type": "type",
    "queue": "queue",
    "category": "category",
    "tenant_id": "tenant",
    "workspace_id": "workspace",
    "created_by": "created_by",
    "tag": "tag",
    "parent_job_id": "parent",
    "schedule_id": "schedule",
    "lease_owner": "worker",
    "text": "text",
}


def query_of(where: "JobFilter") -> list[tuple[str, str]]:
    """The words of a query, without its page."""
    query: list[tuple[str, str]] = [("status", status) for status in dict.fromkeys(where.statuses)]
    for name, word in _FILTER_NAMES.items():
        given = getattr(where, name)
        if given is not None:
            query.append((word, given))
    for word, moment in (("since", where.since), ("until", where.until)):
        if moment is not None:
            query.append((word, iso(moment)))
    for path, expected in where.payload:
        if "=" in path:
            raise InvalidOption("payload", path, "a path without =, over a server")
        query.append(("payload", f"{path}={expected}"))
    return query


class Answer(msgspec.Struct, frozen=True):
    """What became of a call."""

    id: str
    created: bool
    estimated_start: datetime | None = None


_ANSWERS = msgspec.json.Decoder(list[Answer])


class Enqueuer:
    """Hands calls in; while their queue is full it waits as an application does."""

    def __init__(self, wire: Wire, enqueue_timeout: float) -> None:
        self._wire = wire
        self._enqueue_timeout = enqueue_timeout

    async def enqueue(self, jobs: Sequence[NewJob], how: How) -> list[Answer]:
        """All of them in one transaction, or none."""
        wait = self._patience(how)
        if len(jobs) > MAX_BATCH:
            raise InvalidOption("calls", len(jobs), f"at most {MAX_BATCH:,} at once; send several")
        if not jobs:
            return []
        patient = all(job.priority <= REJECTED_ABOVE for job in jobs)
        with sending(jobs) as traced:
            documents = [call_document(job) for job in traced]
            return await self.hand_in(documents, wait if patient else 0, traced[0].trace_context)

    async def hand_in(
        self, documents: Sequence[dict[str, Any]], seconds: float, trace: str | None = None
    ) -> list[Answer]:
        """Send calls; if their queue is full, again until it is not, or for so many seconds."""
        body = msgspec.json.encode(documents)
        until = time.monotonic() + seconds
        while True:
            try:
                return await self._send(body, [each["id"] for each in documents], trace)
            except QueueFull as full:
                left = until - time.monotonic()
                if left <= 0:
                    raise
                await asyncio.sleep(min(full.retry_after, left))

    def patience_for(self, priority: int | None) -> float:
        """For how long a call of this priority waits if nothing else is said."""
        return 0 if (priority or 0) > REJECTED_ABOVE else self._enqueue_timeout

    async def _send(self, body: bytes, ids: Sequence[str], trace: str | None) -> list[Answer]:
        headers = unpacked(trace)
        reply = await self._wire.send("POST", "jobs", body, repeatable=True, headers=headers)
        with self._wire.understanding():
            answers = _ANSWERS.decode(reply.body)
        if reply.tries == 1:
            return answers
        # One that is there now was made by an earlier try, whose answer was lost.
        return [
            replace(answer, created=answer.created or answer.id == job_id)
            for answer, job_id in zip(answers, ids, strict=True)
        ]

    def _patience(self, how: How) -> float:
        if how.get("connection") is not None:
            raise NoTransactions(self._wire.url)
        if how.get("force"):
            raise InvalidOption("force", True, "left out: only who has the store may force it")
        wait = check_wait(how.get("wait"))
        if wait is None or wait is True:
            return self._enqueue_timeout
        return float(wait or 0)
