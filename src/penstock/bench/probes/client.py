"""Measuring the enqueueing side."""

import asyncio
import random
import time
from typing import Any

from penstock.bench.workload import DATA, app_on, noop, stamp

RESULT_SECONDS = 60.0


async def enqueue_many(path: str, jobs: int, batch: int) -> float:
    """Jobs per second in bulk, building the jobs included."""
    async with app_on(path) as app:
        began = time.perf_counter()
        for start in range(0, jobs, batch):
            count = min(batch, jobs - start)
            await app.enqueue_many([noop.new(DATA) for _ in range(count)])
        return jobs / (time.perf_counter() - began)


async def singles(path: str, jobs: int, gap_ms: float = 0) -> list[float]:
    """The milliseconds of each enqueue, one after the other."""
    taken = []
    async with app_on(path):
        for _ in range(jobs):
            began = time.perf_counter()
            await noop.enqueue(DATA)
            taken.append((time.perf_counter() - began) * 1000)
            if gap_ms:
                await asyncio.sleep(gap_ms / 1000)
    return taken


async def under_load(path: str, jobs: int, gap_ms: float) -> dict[str, Any]:
    """The same while a worker drains the file; also what it had left at the end."""
    async with app_on(path) as app:
        taken = await singles(path, jobs, gap_ms)
        left = sum(depth.queued for depth in await app.store.metrics.depths())
    return {"taken": taken, "left": left}


async def concurrently(path: str, jobs: int, enqueuers: int) -> float:
    """Jobs per second when many tasks enqueue one job at a time."""

    async def enqueue_some(count: int) -> None:
        for _ in range(count):
            await noop.enqueue(DATA)

    async with app_on(path):
        began = time.perf_counter()
        each = max(1, jobs // enqueuers)
        await asyncio.gather(*(enqueue_some(each) for _ in range(enqueuers)))
        return each * enqueuers / (time.perf_counter() - began)


async def pickups(path: str, jobs: int, gaps_ms: tuple[float, float]) -> list[float]:
    """The milliseconds from the call of enqueue here to the start of the handler elsewhere."""
    async with app_on(path):
        handles = []
        for _ in range(jobs):
            handles.append(await stamp.enqueue(time.monotonic_ns()))
            await asyncio.sleep(random.uniform(*gaps_ms) / 1000)
        return [await handle.result(timeout=RESULT_SECONDS) / 1e6 for handle in handles]


async def wait_for_worker(path: str) -> None:
    """Return once a worker says that it works on the file."""
    async with app_on(path) as app:
        while not await app.store.workers.list():
            await asyncio.sleep(0.02)
