"""What the doctor looks at, beyond the promises a store checks itself.

Loaded when the doctor is called: what it needs would double the time of every other command.
"""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.app.penstock import Penstock
from penstock.model.wording import counted, span
from penstock.operate import health
from penstock.operate.health import HealthStatus, checks_of
from penstock.store.contract import QueueDepth, Store, WorkerInfo
from penstock.upkeep.sweeps import unserved

LEVELS = {
    HealthStatus.HEALTHY: "ok",
    HealthStatus.DEGRADED: "warning",
    HealthStatus.UNHEALTHY: "wrong",
}
OVERDUE_MS = 60_000
RUNNING = 1_000
COUNTED = 1_000
"""Of each type, waiting jobs are counted up to here."""


class Check(NamedTuple):
    """One thing looked at: `ok`, `warning` or `wrong`, and a word on it."""

    name: str
    level: str
    detail: str


async def examine(app: Penstock, types: frozenset[str] | None) -> tuple[str, list[Check]]:
    """The store's promise, and every check on it and on those who work for it."""
    store, settings = app.store, app.settings
    durability = await store.inspect()
    checks = [
        Check(name, "ok" if passed else "wrong", detail)
        for name, passed, detail in durability.checks
    ]
    known = await store.workers.list()
    depths = await store.metrics.depths()
    waiting = await store.workers.waiting_types()
    found = checks_of(
        settings,
        known,
        depths,
        await store.metrics.dead_count(),
        await store.controls.limits(),
        await store.controls.pauses(),
    )
    live = [worker for worker in known if worker.alive]
    checks += worker_checks(known, waiting, found["workers"])
    checks += type_checks(live, waiting, types)
    checks.append(_as_told("queues", found["queues"]))
    checks += queue_checks(live, depths)
    checks.append(await overdue(store))
    checks.append(_as_told("dead letters", found["dead_letters"]))
    followers = health.follower_checks(await store.changes.followers(), store.clock.now())
    checks += [_as_told(name, check) for name, check in followers.items()]
    for extension in app.extensions:
        for doctor in (False, True):
            told = await health.checks_of_extension(app, extension, doctor=doctor)
            checks += [_as_told(f"{extension.name}: {name}", one) for name, one in told.items()]
    return durability.promise, checks


def worker_checks(
    known: list[WorkerInfo], waiting: dict[str, int], in_all: health.Check
) -> Iterator[Check]:
    """Is anybody there, was everybody heard of, and do they still fetch jobs?"""
    nobody_runs = sum(unserved(waiting, known).values())
    if any(worker.alive for worker in known):
        yield _as_told("workers", in_all)
    elif nobody_runs:
        least = "at least " if max(waiting.values()) >= COUNTED else ""
        detail = f"none is alive, and {least}{counted(nobody_runs, 'job')} could run; start one"
        yield Check("workers", "wrong", detail)
    else:
        yield Check("workers", "warning", "none is alive; nothing waits")
    for worker in known:
        named = f"{worker.name} (pid {worker.pid})"
        if not worker.alive:
            yield Check("heartbeat", "wrong", f"{named} silent for {span(worker.heartbeat_age_ms)}")
        elif worker.state == "degraded":
            yield Check("store", "wrong", f"{named} is degraded: the store refuses its writes")
        elif health.is_stuck(worker):
            yield Check("poll", "wrong", f"{named} last polled {span(worker.poll_age_ms)} ago")


def type_checks(
    live: list[WorkerInfo], waiting: dict[str, int], types: frozenset[str] | None
) -> Iterator[Check]:
    """Is there somebody for every type that waits?"""
    nobody = unserved(waiting, live) if live else {}
    for name, count in nobody.items():
        yield Check("types", "wrong", f"no worker runs type {name!r}; waiting: {_so_many(count)}")
    if types is not None:
        for name, count in unserved(waiting, ()).items():
            if name not in types:
                detail = f"lacks type {name!r}; waiting: {_so_many(count)}"
                yield Check("application", "wrong", detail)
        yield Check("application", "ok", f"registers {len(types)} job types")
    if not nobody and live:
        yield Check("types", "ok", "every type that waits has a worker")


def queue_checks(live: list[WorkerInfo], depths: list[QueueDepth]) -> Iterator[Check]:
    """Is there somebody for every queue?"""
    everything = any(worker.queues is None for worker in live)
    served = {name for worker in live for name in worker.queues or ()}
    for depth in depths:
        if depth.queued and live and not everything and depth.queue not in served:
            detail = f"no worker serves {depth.queue!r}, where {depth.queued:,} wait"
            yield Check("queues", "wrong", detail)


async def overdue(store: Store) -> Check:
    """Leases that ran out and that nobody took away."""
    running = await store.reader.running(RUNNING)
    limit = store.clock.now() - OVERDUE_MS
    late = sum(job.lease_until is not None and job.lease_until < limit for job in running)
    if late:
        return Check(
            "rescue", "wrong", f"{counted(late, 'lease')} ran out over a minute ago; start a worker"
        )
    return Check("rescue", "ok", f"no lease of {len(running):,} is overdue")


def _as_told(name: str, check: health.Check) -> Check:
    return Check(name, LEVELS[check.status], check.detail)


def _so_many(waiting: int) -> str:
    return f"{waiting:,} or more" if waiting >= COUNTED else f"{waiting:,}"
