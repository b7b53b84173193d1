"""Measuring the enqueueing side."""

import asyncio
import multiprocessing
import random
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from proof.bench.limits.sqlite import open_raw, raw_rows, raw_singles
from proof.bench.workload import DATA, PAYLOAD, app_on, noop, stamp

RESULT_SECONDS = 60.0
TOGETHER_SECONDS = 60.0
PRODUCER_SECONDS = 600.0
LOAD_GROUP = 10


async def enqueue_many(path: str, jobs: int, batch: int) -> float:
    """Jobs per second in bulk, building the jobs included."""
    async with app_on(path) as app:
        began = time.perf_counter()
        for start in range(0, jobs, batch):
            count = min(batch, jobs - start)
            await app.enqueue_many([noop.new(DATA) for _ in range(count)])
        return jobs / (time.perf_counter() - began)


async def singles(path: str, jobs: int) -> dict[str, list[float]]:
    """The milliseconds of bare transactions and of enqueues, each into a file of its own.

    They alternate call by call: on a busy machine two processes that run one after the other meet
    different noise, and the comparison says more about the scheduler than about either.
    """
    connection = open_raw(Path(path).with_suffix(".raw.db"))
    bare: list[float] = []
    taken: list[float] = []
    async with app_on(path):
        for row in raw_rows(jobs, "noop", PAYLOAD):
            bare += [seconds * 1000 for seconds in raw_singles(connection, [row])]
            taken.append(await _single())
    connection.close()
    return {"bare": bare, "penstock": taken}


async def under_load(path: str, jobs: int, gap_ms: float) -> list[float]:
    """The same while a worker drains the file; ends early when it has nothing left to drain."""
    taken: list[float] = []
    async with app_on(path) as app:
        while len(taken) < jobs:
            group = []
            for _ in range(LOAD_GROUP):
                group.append(await _single())
                await asyncio.sleep(gap_ms / 1000)
            busy = sum(depth.queued for depth in await app.store.metrics.depths()) > LOAD_GROUP
            if not busy and taken:
                break
            taken += group
    return taken


async def _single() -> float:
    began = time.perf_counter()
    await noop.enqueue(DATA)
    return (time.perf_counter() - began) * 1000


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


def producers(path: str, processes: int, tasks: int, jobs: int) -> list[float]:
    """The milliseconds of single enqueues by many processes at once, each with many tasks."""
    context = multiprocessing.get_context("fork")  # importing everything anew takes far longer
    together = context.Barrier(processes)
    answers: Queue[list[float]] = context.Queue()
    arguments = (path, tasks, jobs, together, answers)
    children = [
        context.Process(target=_produce, args=arguments, daemon=True) for _ in range(processes)
    ]
    for child in children:
        child.start()
    taken = [ms for _ in children for ms in answers.get(timeout=PRODUCER_SECONDS)]
    for child in children:
        child.join()
    return taken


def _produce(
    path: str, tasks: int, jobs: int, together: Barrier, answers: "Queue[list[float]]"
) -> None:
    async def enqueue_some() -> list[float]:
        return [await _single() for _ in range(jobs)]

    async def enqueue_all() -> list[float]:
        async with app_on(path):
            await noop.enqueue(DATA)
            together.wait(TOGETHER_SECONDS)
            taken = await asyncio.gather(*(enqueue_some() for _ in range(tasks)))
        return [ms for of_task in taken for ms in of_task]

    answers.put(asyncio.run(enqueue_all()))


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
        while not await app.store.workers.list():  # noqa: ASYNC110 - it is in another process
            await asyncio.sleep(0.02)
