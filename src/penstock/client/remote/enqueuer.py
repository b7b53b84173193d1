"""Enqueueing through a server: sent again with the same ids, so that nothing is made twice."""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from penstock.client.admission import REJECTED_ABOVE, How
from penstock.client.options import check_wait
from penstock.client.remote.calls import call_document
from penstock.client.remote.wire import Wire
from penstock.client.trace_context import unpacked
from penstock.client.tracing import sending
from penstock.model.errors import InvalidOption, NoTransactions
from penstock.model.job import MAX_BATCH, NewJob
from penstock.model.refused import QueueFull


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
