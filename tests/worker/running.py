"""A worker for the length of a block, and waiting on what it does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from penstock import Job, Penstock, Worker


@asynccontextmanager
async def working(app: Penstock, **options: Any) -> AsyncIterator[Worker]:
    """A worker that is taking jobs; it is stopped at once when the block ends."""
    worker = Worker(app, **{"upkeep": False, **options})
    running = asyncio.create_task(worker.run())
    started = asyncio.create_task(worker.started())
    await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
    started.cancel()
    try:
        yield worker
    finally:
        worker.stop()
        worker.stop()
        await running


async def becomes(app: Penstock, job_id: str, condition: Callable[[Job], bool]) -> Job:
    """The job, as soon as the condition holds."""
    async with asyncio.timeout(30):
        async for job in app.store.reader.watch([job_id]):
            if condition(job):
                return job
    raise AssertionError(f"job {job_id} ended as {job.status} and never fulfilled the condition")
