"""What the doctor looks at, beyond the promises a store checks itself."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.cli.output import counted
from penstock.model.spans import span
from penstock.model.states import Status
from penstock.store.contract import JobFilter, QueueDepth, Store, WorkerInfo

POLL_MS = 10_000
OLD_MS = 3_600_000
OVERDUE_MS = 60_000
MANY_DEAD = 50
COUNTED = 1_000
"""Of each type, waiting jobs are counted up to here."""


class Check(NamedTuple):
    """One thing looked at: `ok`, `warning` or `wrong`, and a word on it."""

    name: str
    level: str
    detail: str


async def examine(store: Store, types: frozenset[str] | None) -> tuple[str, list[Check]]:
    """The store's promise, and every check on it and on those who work for it."""
    durability = await store.inspect()
    checks = [
        Check(name, "ok" if passed else "wrong", detail)
        for name, passed, detail in durability.checks
    ]
    known = await store.workers.list()
    live = [worker for worker in known if worker.alive]
    waiting = await store.workers.waiting_types()
    depths = await store.metrics.depths()
    checks += worker_checks(known, waiting)
    checks += type_checks(live, waiting, types)
    checks += queue_checks(live, depths)
    checks.append(await overdue(store))
    checks.append(dead_letters(await store.metrics.dead_count()))
    return durability.promise, checks


def worker_checks(known: list[WorkerInfo], waiting: dict[str, int]) -> Iterator[Check]:
    """Is anybody there, was everybody heard of, and do they still fetch jobs?"""
    live = [worker for worker in known if worker.alive]
    jobs = sum(waiting.values())
    if not live and jobs:
        least = "at least " if max(waiting.values()) >= COUNTED else ""
        detail = f"none is alive, and {least}{counted(jobs, 'job')} could run; start one"
        yield Check("workers", "wrong", detail)
    elif not live:
        yield Check("workers", "warning", "none is alive; nothing waits")
    else:
        running = sum(worker.running for worker in live)
        yield Check("workers", "ok", f"{len(live)} alive, running {counted(running, 'job')}")
    for worker in known:
        if not worker.alive:
            quiet = span(worker.heartbeat_age_ms)
            yield Check(
                "heartbeat", "wrong", f"{worker.name} (pid {worker.pid}) silent for {quiet}"
            )
        elif worker.state == "degraded":
            detail = f"{worker.name} (pid {worker.pid}) is degraded: the store refuses its writes"
            yield Check("store", "wrong", detail)
        elif worker.poll_age_ms > POLL_MS and worker.state != "draining":
            age = span(worker.poll_age_ms)
            yield Check("poll", "wrong", f"{worker.name} (pid {worker.pid}) last polled {age} ago")


def type_checks(
    live: list[WorkerInfo], waiting: dict[str, int], types: frozenset[str] | None
) -> Iterator[Check]:
    """Is there somebody for every type that waits?"""
    served = {name for worker in live for name in worker.types}
    nobody = {name: count for name, count in waiting.items() if live and name not in served}
    for name, count in sorted(nobody.items()):
        yield Check("types", "wrong", f"no worker runs type {name!r}; waiting: {_so_many(count)}")
    if types is not None:
        for name in sorted(waiting.keys() - types):
            detail = f"lacks type {name!r}; waiting: {_so_many(waiting[name])}"
            yield Check("application", "wrong", detail)
        yield Check("application", "ok", f"registers {len(types)} job types")
    if not nobody and live:
        yield Check("types", "ok", "every type that waits has a worker")


def _so_many(waiting: int) -> str:
    return f"{waiting:,} or more" if waiting >= COUNTED else f"{waiting:,}"


def queue_checks(live: list[WorkerInfo], depths: list[QueueDepth]) -> Iterator[Check]:
    """Is there somebody for every queue, and does nothing wait for too long?"""
    everything = any(worker.queues is None for worker in live)
    served = {name for worker in live for name in worker.queues or ()}
    for depth in depths:
        if depth.queued and live and not everything and depth.queue not in served:
            detail = f"no worker serves {depth.queue!r}, where {depth.queued:,} wait"
            yield Check("queues", "wrong", detail)
        oldest = depth.oldest_queued_ms or 0
        if oldest > OLD_MS:
            detail = f"the oldest job in {depth.queue!r} has waited {span(oldest)}"
            yield Check("queues", "warning", detail)


async def overdue(store: Store) -> Check:
    """Leases that ran out and that nobody took away."""
    running = await store.reader.find(JobFilter(status=Status.IN_PROGRESS, limit=1000))
    limit = store.clock.now() - OVERDUE_MS
    late = sum(job.lease_until is not None and job.lease_until < limit for job in running)
    if late:
        return Check(
            "rescue", "wrong", f"{counted(late, 'lease')} ran out over a minute ago; start a worker"
        )
    return Check("rescue", "ok", f"no lease of {len(running):,} is overdue")


def dead_letters(count: int) -> Check:
    """Dead letters wait for a person."""
    if count == 0:
        return Check("dead letters", "ok", "none to decide about")
    level = "wrong" if count >= MANY_DEAD else "warning"
    return Check("dead letters", level, f"{count:,} to decide about; see `penstock dead ls`")
