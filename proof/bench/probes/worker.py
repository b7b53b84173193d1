"""Measuring the working side."""

import asyncio
import time

import psutil

from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import Supervisor
from penstock.worker.worker import Worker
from proof.bench.workload import TARGET, app_on

SAMPLE_SECONDS = 0.05


async def drain(path: str, jobs: int, concurrency: int, mark: int = 0) -> dict[str, float]:
    """Jobs per second of one worker, its start and end included, and its memory on the way.

    `mark` is the number of jobs after which the memory is first noted.
    """
    async with app_on(path) as app:
        worker = Worker(app, concurrency=concurrency, burst=True)
        noting = asyncio.create_task(_rss_after(worker, mark))
        began = time.perf_counter()
        await worker.run()
        taken = time.perf_counter() - began
        noting.cancel()
        if worker.counts["completed"] != jobs:
            raise RuntimeError(f"The worker ended with {worker.counts} of {jobs} jobs.")
        return {
            "rate": jobs / taken,
            "mark_mb": noting.result() if noting.done() else _rss_mb(),
            "end_mb": _rss_mb(),
        }


async def supervise(path: str) -> int:
    """Keep one worker process on a file until stopped."""
    spec = WorkerSpec(target=TARGET, url=f"sqlite:///{path}", log_level="error")
    return await Supervisor(spec).run()


async def _rss_after(worker: Worker, mark: int) -> float:
    while worker.counts["completed"] < mark:  # noqa: ASYNC110 - the worker keeps no event for it
        await asyncio.sleep(SAMPLE_SECONDS)
    return _rss_mb()


def _rss_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6
