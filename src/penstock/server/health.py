"""Whether all is well: a check each for the store, the workers, the queues and the dead letters."""

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from penstock.config import Settings
from penstock.model.clock import iso
from penstock.model.errors import PenstockError
from penstock.model.limits import EVERY, LimitKind, LimitState
from penstock.model.moves import refuse_moved
from penstock.model.pause import PauseScope
from penstock.model.spans import span
from penstock.store.contract import QueueDepth, Store, WorkerInfo

SLOW_PING_MS = 100
OLD_POLL_MS = 10_000
OLD_JOB_MS = 3_600_000
NAMED = 5


class Condition(StrEnum):
    """How something is, the worst last."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class Check(Struct, frozen=True):
    """One thing looked at: how it is, a sentence about it, and the figures behind it."""

    status: Condition
    detail: str
    figures: dict[str, Any] = {}


class Health(Struct, frozen=True, kw_only=True):
    """As well as the worst of the checks."""

    at: int
    status: Condition
    checks: dict[str, Check]
    live_workers: int | None
    queues: int | None
    oldest_queued_ms: int | None
    dead_letters: int | None

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        details = ("live_workers", "queues", "oldest_queued_ms", "dead_letters")
        return {
            "at": iso(self.at),
            "status": self.status.value,
            "checks": {
                name: {
                    "status": check.status.value,
                    "detail": check.detail,
                    "figures": check.figures,
                }
                for name, check in self.checks.items()
            },
            "details": {name: getattr(self, name) for name in details},
        }


async def ping(store: Store) -> float:
    """Seconds the store took to answer; raises if it cannot, or was moved away."""
    began = time.perf_counter()
    marks = await store.transfer.marks()
    took = time.perf_counter() - began
    refuse_moved(store.url, marks)
    return took


async def check_health(store: Store, settings: Settings) -> Health:
    """Look at everything; a store that does not answer is all that can be said."""
    try:
        return await _examined(store, settings)
    except PenstockError as error:
        return Health(
            at=store.clock.now(),
            status=Condition.UNHEALTHY,
            checks={"store": Check(Condition.UNHEALTHY, str(error))},
            live_workers=None,
            queues=None,
            oldest_queued_ms=None,
            dead_letters=None,
        )


async def _examined(store: Store, settings: Settings) -> Health:
    seconds = await ping(store)
    workers = await store.workers.list()
    depths = await store.metrics.depths()
    dead = await store.metrics.dead_count()
    limits = queue_limits(await store.controls.limits())
    pauses = await store.controls.pauses()
    paused = {pause.name for pause in pauses if pause.scope is PauseScope.QUEUE}
    checks = {
        "store": store_check(seconds * 1_000),
        "workers": worker_check(workers, settings.min_workers),
        "queues": queue_check(depths, paused, limits, settings.queue_limit),
        "dead_letters": dead_check(dead, settings.max_dead_letters),
    }
    oldest = [d.oldest_queued_ms for d in depths if d.oldest_queued_ms is not None]
    return Health(
        at=store.clock.now(),
        status=worst([check.status for check in checks.values()]),
        checks=checks,
        live_workers=sum(worker.alive for worker in workers),
        queues=len(depths),
        oldest_queued_ms=max(oldest, default=None),
        dead_letters=dead,
    )


def worst(conditions: Sequence[Condition]) -> Condition:
    """The worst of several."""
    order = list(Condition)
    return max(conditions, key=order.index, default=Condition.HEALTHY)


def store_check(ping_ms: float) -> Check:
    """A store is well while it answers within a tenth of a second."""
    status = Condition.HEALTHY if ping_ms < SLOW_PING_MS else Condition.DEGRADED
    return Check(status, f"It answered in {span(ping_ms)}.", {"ping_ms": round(ping_ms, 2)})


def worker_check(workers: Sequence[WorkerInfo], minimum: int) -> Check:
    """Enough workers are alive, and each of them still fetches jobs."""
    live = [worker for worker in workers if worker.alive]
    stuck = [worker.name for worker in live if _is_stuck(worker)]
    figures = {
        "live": len(live),
        "minimum": minimum,
        "silent": len(workers) - len(live),
        "poll_age_ms": {worker.owner: worker.poll_age_ms for worker in live},
        "heartbeat_age_ms": {worker.owner: worker.heartbeat_age_ms for worker in live},
    }
    if not live and minimum:
        return Check(Condition.UNHEALTHY, "No worker is alive; start one.", figures)
    if len(live) < minimum:
        few = f"{len(live)} of at least {minimum} workers are alive."
        return Check(Condition.DEGRADED, few, figures)
    if stuck:
        told = f"Alive, but without a successful poll: {_listed(stuck)}."
        return Check(Condition.DEGRADED, told, figures)
    return Check(Condition.HEALTHY, f"Alive: {len(live)}, and at least {minimum} must be.", figures)


def queue_check(
    depths: Sequence[QueueDepth], paused: set[str], limits: dict[str, int], default: int
) -> Check:
    """No queue is full, none that is paused keeps jobs waiting, and none is left lying."""
    every = limits.get(EVERY, default)
    full = [d.queue for d in depths if 0 < limits.get(d.queue, every) <= d.queued]
    held = [d.queue for d in depths if d.queue in paused and d.queued]
    old = [
        d.queue for d in depths if d.queue not in paused and (d.oldest_queued_ms or 0) > OLD_JOB_MS
    ]
    figures = {"full": full, "paused": sorted(paused), "old": old}
    told = [
        f"{words}: {_listed(names)}."
        for words, names in (
            ("Full", full),
            ("Paused while jobs wait", held),
            ("Waiting for over an hour", old),
        )
        if names
    ]
    if told:
        return Check(Condition.DEGRADED, " ".join(told), figures)
    return Check(Condition.HEALTHY, "None is full, held back or left lying.", figures)


def dead_check(count: int, limit: int) -> Check:
    """Dead letters wait for a person: some are a warning, many an emergency."""
    figures = {"count": count, "limit": limit}
    if count == 0:
        return Check(Condition.HEALTHY, "There are none to decide about.", figures)
    status = Condition.DEGRADED if count < limit else Condition.UNHEALTHY
    return Check(status, f"To decide about: {count:,}; see `penstock dead groups`.", figures)


def queue_limits(limits: Sequence[LimitState]) -> dict[str, int]:
    """How many jobs may wait in which queue."""
    found = (state.limit for state in limits if state.limit.kind is LimitKind.DEPTH)
    return {limit.name: limit.capacity for limit in found}


def _is_stuck(worker: WorkerInfo) -> bool:
    old = worker.poll_age_ms > OLD_POLL_MS and worker.state != "draining"
    return old or worker.state == "degraded"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
