"""Measuring what is more than a queue: limits, flows, schedules, explain."""

import asyncio
import random
import time

from penstock.app.penstock import Penstock
from penstock.model.dependency import Edge
from penstock.model.ids import new_ids
from penstock.model.job import NewJob
from penstock.model.schedule import Schedule, ScheduleKind
from penstock.worker.worker import Worker
from proof.bench.workload import DATA, PAYLOAD, app_on, link, noop

CONCURRENCY = 100
DAY_SECONDS = 86_400
BATCH = 1_000
FILLED_PER_MS = 10
"""Jobs can be enqueued several times as fast as that; the rest is for a slow machine."""


async def limit(path: str, concurrency: int) -> None:
    """Let no more than so many of the jobs run at once, in all processes together."""
    async with app_on(path) as app:
        await app.controls.set_limit(type=noop, concurrency=concurrency)


async def put_off(path: str, jobs: int) -> None:
    """Enqueue jobs that all fall due at one instant, and wait for it."""
    async with app_on(path) as app:
        due = app.store.clock.now() + 1_000 + jobs // FILLED_PER_MS
        for start in range(0, jobs, BATCH):
            ids = new_ids(min(BATCH, jobs - start))
            await app.store.jobs.enqueue(
                [NewJob(id=i, type=noop.name, payload=PAYLOAD, scheduled_at=due) for i in ids]
            )
        await asyncio.sleep((due - app.store.clock.now()) / 1000)


async def fan_in(path: str, parents: int) -> float:
    """Seconds until a job has run that waits for so many others, all of them queued."""
    async with app_on(path) as app:
        ids = new_ids(parents)
        await app.store.jobs.enqueue([NewJob(id=i, type=noop.name, payload=PAYLOAD) for i in ids])
        edges = tuple(Edge(parent_id=parent) for parent in ids)
        (child,) = new_ids(1)
        waits = NewJob(id=child, type=noop.name, payload=PAYLOAD, after=edges)
        await app.store.jobs.enqueue([waits])
        return await _seconds_to_end(app, parents + 1)


async def chain(path: str, links: int) -> float:
    """Links per second of a chain in which each job waits for the one before."""
    async with app_on(path) as app:
        ids = new_ids(links)
        jobs = [
            NewJob(
                id=job_id,
                type=link.name,
                payload=f'{{"number":{number}}}',
                after=(Edge(parent_id=ids[number - 1]),) if number else (),
            )
            for number, job_id in enumerate(ids)
        ]
        await app.store.jobs.enqueue(jobs)
        return links / await _seconds_to_end(app, links)


async def schedule(path: str, count: int) -> None:
    """Make so many daily schedules, their times spread over the day."""
    async with app_on(path) as app:
        now = app.store.clock.now()
        for number, schedule_id in enumerate(new_ids(count)):
            second = DAY_SECONDS * number // count
            await app.store.schedules.put(
                Schedule(
                    id=schedule_id,
                    name=f"schedule-{number}",
                    type=noop.name,
                    kind=ScheduleKind.INTERVAL,
                    payload=PAYLOAD,
                    interval_ms=DAY_SECONDS * 1000,
                    starts_at=now + second * 1000,
                    next_run_at=now + second * 1000,
                )
            )


async def explain(path: str, times: int) -> list[float]:
    """The milliseconds of asking why a job does not run, for jobs of every age."""
    async with app_on(path) as app:
        known = [(await noop.options(delay=3600).enqueue(DATA)).id]
        known += [(await noop.enqueue(DATA)).id]
        page = await app.find(limit=1000)
        known += [job.id for job in page]
        taken = []
        for _ in range(times):
            job_id = random.choice(known)
            began = time.perf_counter()
            await app.explain(job_id)
            taken.append((time.perf_counter() - began) * 1000)
        return taken


async def _seconds_to_end(app: Penstock, jobs: int) -> float:
    worker = Worker(app, concurrency=CONCURRENCY, burst=True)
    began = time.perf_counter()
    await worker.run()
    taken = time.perf_counter() - began
    if worker.counts["completed"] != jobs:
        raise RuntimeError(f"The worker ended with {worker.counts} of {jobs} jobs.")
    return taken
