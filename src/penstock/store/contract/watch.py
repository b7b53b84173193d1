"""Watching jobs, the same on every store: look, wait for a wake-up, look again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from penstock.model.job import Job
from penstock.store.contract.store import Subscription

WATCH_SECONDS = 1.0
WATCH_PAUSE_SECONDS = 0.05

Get = Callable[[Sequence[str]], Awaitable[list[Job]]]


async def watch(
    get: Get, subscribe: Callable[[], Subscription], ids: Sequence[str]
) -> AsyncGenerator[Job, None]:
    """Each job now and whenever it changes, until all of them are terminal."""
    listener = subscribe()
    seen: dict[str, Job] = {}
    waiting = list(dict.fromkeys(ids))
    # Changes of other jobs ring too: a long wait looks less and less often.
    pause = 0.001
    try:
        while waiting:
            found = await get(waiting)
            for job in found:
                if seen.get(job.id) != job:
                    seen[job.id] = job
                    yield job
            waiting = [job.id for job in found if not job.status.terminal]
            if waiting:
                await asyncio.sleep(pause)
                await listener.wait(WATCH_SECONDS)
                pause = min(pause * 2, WATCH_PAUSE_SECONDS)
    finally:
        listener.close()
