"""Whether all is well: a check each for the store, the workers, the queues and the dead letters."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, to_builtins

from penstock.config import Settings
from penstock.model.clock import iso
from penstock.model.controls import DepthLimits, LimitState, Pause, PauseScope
from penstock.model.errors import PenstockError
from penstock.model.store_errors import StoreUnavailable
from penstock.model.transfer import refuse_moved
from penstock.model.wording import counted, listed, span
from penstock.operate.extensions import read_part
from penstock.operate.followers import behind
from penstock.store.contract import FollowerState, QueueDepth, Store, WorkerInfo

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Extension

T = TypeVar("T")


async def answered(store: Store, question: Coroutine[Any, Any, T], seconds: float) -> T:
    """The answer to a short question, or StoreUnavailable when it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await question
    except TimeoutError:
        raise StoreUnavailable(store.url, f"no answer within {seconds:g} s") from None


SLOW_PING_MS = 100
PING_SECONDS = 2
OLD_POLL_MS = 10_000
OLD_JOB_MS = 3_600_000


class HealthStatus(StrEnum):
    """How something is, the worst last."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class Check(Struct, frozen=True):
    """One thing looked at: how it is, a sentence about it, and the figures behind it."""

    status: HealthStatus
    detail: str
    figures: dict[str, Any] = {}


class HealthDetails(Struct, frozen=True, kw_only=True):
    """The figures that matter most; unknown while the store does not answer."""

    live_workers: int | None = None
    queues: int | None = None
    oldest_queued_ms: int | None = None
    dead_letters: int | None = None


class Health(Struct, frozen=True, kw_only=True):
    """As well as the worst of the checks."""

    at: int
    status: HealthStatus
    checks: dict[str, Check]
    details: HealthDetails

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {**to_builtins(self), "at": iso(self.at)}


async def ping(store: Store) -> float:
    """Seconds the store took to answer; raises if it cannot, or was moved away."""
    began = time.perf_counter()
    marks = await answered(store, store.transfer.marks(), PING_SECONDS)
    took = time.perf_counter() - began
    refuse_moved(store.url, marks)
    return took


async def check_health(store: Store, settings: Settings, app: "Penstock | None" = None) -> Health:
    """Look at everything, extensions included if they are an application's.

    Of a store that does not answer, nothing else can be said.
    """
    try:
        return await _examined(store, settings, app)
    except PenstockError as error:
        return Health(
            at=store.clock.now(),
            status=HealthStatus.UNHEALTHY,
            checks={"store": Check(HealthStatus.UNHEALTHY, str(error))},
            details=HealthDetails(),
        )


async def _examined(store: Store, settings: Settings, app: "Penstock | None") -> Health:
    seconds = await ping(store)
    workers = await store.workers.list()
    depths = await store.metrics.depths()
    dead = await store.metrics.dead_count()
    limits = await store.controls.limits()
    pauses = await store.controls.pauses()
    followers = await store.changes.followers()
    dispatch = await store.dispatch_answers()
    checks = {
        "store": store_check(seconds * 1_000),
        **({} if dispatch is None else {"dispatch": dispatch_check(dispatch)}),
        **checks_of(settings, workers, depths, dead, limits, pauses),
        **follower_checks(followers, store.clock.now()),
        **({} if app is None else await extension_checks(app)),
    }
    oldest = [d.oldest_queued_ms for d in depths if d.oldest_queued_ms is not None]
    return Health(
        at=store.clock.now(),
        status=worst([check.status for check in checks.values()]),
        checks=checks,
        details=HealthDetails(
            live_workers=sum(worker.alive for worker in workers),
            queues=len(depths),
            oldest_queued_ms=max(oldest, default=None),
            dead_letters=dead,
        ),
    )


async def extension_checks(app: "Penstock") -> dict[str, Check]:
    """What the enabled extensions say of themselves, as `NAME.check`."""
    return {
        f"{extension.name}.{name}": check
        for extension in app.extensions
        for name, check in (await checks_of_extension(app, extension)).items()
    }


async def checks_of_extension(
    app: "Penstock", extension: "Extension", *, doctor: bool = False
) -> dict[str, Check]:
    """The checks of one extension, or those for the doctor; one that fails is a finding, too."""
    found: dict[str, Check] = {}
    for name, part in (extension.doctor if doctor else extension.checks).items():
        check: Check | None = await read_part(extension, f"check {name}", part, app)
        found[name] = check or Check(HealthStatus.DEGRADED, "It could not be looked at.")
    return found


def checks_of(
    settings: Settings,
    workers: Sequence[WorkerInfo],
    depths: Sequence[QueueDepth],
    dead: int,
    limits: Sequence[LimitState],
    pauses: Sequence[Pause],
) -> dict[str, Check]:
    """What can be said of a look at the store: workers, queues and dead letters."""
    paused = {pause.name for pause in pauses if pause.scope is PauseScope.QUEUE}
    bounds = DepthLimits(limits, settings.queue_limit)
    return {
        "workers": worker_check(workers, settings.min_workers),
        "queues": queue_check(depths, paused, bounds),
        "dead_letters": dead_check(dead, settings.max_dead_letters),
    }


def worst(statuses: Sequence[HealthStatus]) -> HealthStatus:
    """The worst of several."""
    order = list(HealthStatus)
    return max(statuses, key=order.index, default=HealthStatus.HEALTHY)


def store_check(ping_ms: float) -> Check:
    """A store is well while it answers within a tenth of a second."""
    status = HealthStatus.HEALTHY if ping_ms < SLOW_PING_MS else HealthStatus.DEGRADED
    return Check(status, f"It answered in {span(ping_ms)}.", {"ping_ms": round(ping_ms, 2)})


def dispatch_check(answers: bool) -> Check:
    """Without the Redis beside it PostgreSQL does everything, only slower."""
    if answers:
        return Check(HealthStatus.HEALTHY, "The Redis beside PostgreSQL answers.")
    told = "The Redis beside PostgreSQL does not answer; workers claim from PostgreSQL alone."
    return Check(HealthStatus.DEGRADED, told)


def worker_check(workers: Sequence[WorkerInfo], minimum: int) -> Check:
    """Enough workers are alive, and each of them still fetches jobs."""
    live = [worker for worker in workers if worker.alive]
    stuck = [worker.name for worker in live if is_stuck(worker)]
    figures = {
        "live": len(live),
        "minimum": minimum,
        "silent": len(workers) - len(live),
        "poll_age_ms": {worker.owner: worker.poll_age_ms for worker in live},
        "heartbeat_age_ms": {worker.owner: worker.heartbeat_age_ms for worker in live},
    }
    if not live and minimum:
        return Check(HealthStatus.UNHEALTHY, "No worker is alive; start one.", figures)
    if len(live) < minimum:
        few = f"Alive: {len(live)}, and at least {minimum} must be."
        return Check(HealthStatus.DEGRADED, few, figures)
    if stuck:
        told = f"Alive, but without a successful poll: {listed(stuck)}."
        return Check(HealthStatus.DEGRADED, told, figures)
    return Check(
        HealthStatus.HEALTHY, f"Alive: {len(live)}, and at least {minimum} must be.", figures
    )


def queue_check(depths: Sequence[QueueDepth], paused: set[str], limits: DepthLimits) -> Check:
    """No queue is full, none that is paused keeps jobs waiting, and none is left lying."""
    full = [d.queue for d in depths if 0 < limits.of(d.queue) <= d.queued]
    held = [d.queue for d in depths if d.queue in paused and d.queued]
    old = [
        d.queue for d in depths if d.queue not in paused and (d.oldest_queued_ms or 0) > OLD_JOB_MS
    ]
    figures = {"full": full, "paused": sorted(paused), "old": old}
    told = [
        f"{words}: {listed(names)}."
        for words, names in (
            ("Full", full),
            ("Paused while jobs wait", held),
            ("Waiting for over an hour", old),
        )
        if names
    ]
    if told:
        return Check(HealthStatus.DEGRADED, " ".join(told), figures)
    return Check(HealthStatus.HEALTHY, "None is full, held back or left lying.", figures)


def dead_check(count: int, limit: int) -> Check:
    """Dead letters wait for a person: some are a warning, many an emergency."""
    figures = {"count": count, "limit": limit}
    if count == 0:
        return Check(HealthStatus.HEALTHY, "None is open.", figures)
    status = HealthStatus.DEGRADED if count < limit else HealthStatus.UNHEALTHY
    return Check(status, f"{count:,} open; see `penstock dead groups`.", figures)


def follower_checks(states: Sequence[FollowerState], now: int) -> dict[str, Check]:
    """Where there are followers, nothing waits for long: what nobody reads fills the store."""
    if not states:
        return {}
    late = behind(states, now)
    figures = {"waiting": {state.name: state.waiting for state in states}}
    if not late:
        return {"followers": Check(HealthStatus.HEALTHY, "None is behind.", figures)}
    told = listed(
        [f"{state.name} ({counted(state.waiting, 'change')} to be told)" for state in late]
    )
    advice = f"start a worker that has its extension, or `penstock followers drop {late[0].name}`"
    return {"followers": Check(HealthStatus.DEGRADED, f"Behind: {told}; {advice}.", figures)}


def is_stuck(worker: WorkerInfo) -> bool:
    """Whether a living worker fetches nothing, or cannot write down what it did."""
    old = worker.poll_age_ms > OLD_POLL_MS and worker.state != "draining"
    return old or worker.state == "degraded"
