"""Real stores with one reason each why a job does, or does not, run."""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.model.controls import Breaker, Limit, LimitKind, LimitScope, PauseScope
from penstock.model.explain import ReasonKind
from penstock.store.contract import Beat, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    claim_all,
    dead_job,
    enqueue,
    enqueue_after,
    failed,
    running,
    snoozed,
)

Scenario = Callable[[Store, FakeClock], Awaitable[str]]
SCENARIOS: dict[ReasonKind, Scenario] = {}
OPENS_AT_ONCE = Breaker(name="smtp", types=("work",), failures=1, cool_down_ms=30_000)


def beat(store: Store, **changes: Any) -> None:
    """A worker that would take any job of type `work`."""
    healthy: dict[str, Any] = {
        "owner": OWNER,
        "name": "mailer",
        "node": "host-a",
        "pid": 1,
        "queues": None,
        "types": ("work",),
        "concurrency": 10,
        "running": 0,
        "completed": 0,
        "failed": 0,
        "cpu_percent": 0.0,
        "memory_mb": 1.0,
        "poll_age_ms": 0,
    }
    store.workers.beat(Beat(**healthy | changes))


def a_limit(scope: str, name: str, capacity: int, interval_ms: int | None = None) -> Limit:
    kind = LimitKind.CONCURRENCY if interval_ms is None else LimitKind.RATE
    return Limit(
        scope=LimitScope(scope), name=name, kind=kind, capacity=capacity, interval_ms=interval_ms
    )


def scenario(kind: ReasonKind) -> Callable[[Scenario], Scenario]:
    def remember(build: Scenario) -> Scenario:
        SCENARIOS[kind] = build
        return build

    return remember


@scenario(ReasonKind.ENDED)
async def _(store: Store, clock: FakeClock) -> str:
    return await dead_job(store)


@scenario(ReasonKind.KEY_TAKEN)
async def _(store: Store, clock: FakeClock) -> str:
    dead = await dead_job(store, key="k")
    await enqueue(store, key="k")
    return dead


@scenario(ReasonKind.CANCEL_REQUESTED)
async def _(store: Store, clock: FakeClock) -> str:
    lease = await running(store)
    await store.jobs.cancel([lease.id], "enough")
    return lease.id


@scenario(ReasonKind.LEASE_LAPSED)
async def _(store: Store, clock: FakeClock) -> str:
    lease = await running(store)
    clock.advance(seconds=61)
    return lease.id


@scenario(ReasonKind.RUNNING)
async def _(store: Store, clock: FakeClock) -> str:
    return (await running(store)).id


@scenario(ReasonKind.PREFETCHED)
async def _(store: Store, clock: FakeClock) -> str:
    job_id = await enqueue(store)
    await claim_all(store, start=0)
    return job_id


@scenario(ReasonKind.EXPIRED)
async def _(store: Store, clock: FakeClock) -> str:
    job_id = await enqueue(store, expires_in_ms=1_000)
    clock.advance(seconds=2)
    return job_id


@scenario(ReasonKind.JOB_PAUSED)
async def _(store: Store, clock: FakeClock) -> str:
    job_id = await enqueue(store)
    await store.controls.pause(PauseScope.JOB, job_id, reason="odd", by="ada")
    return job_id


@scenario(ReasonKind.QUEUE_PAUSED)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.pause(PauseScope.QUEUE, "mail", reason="deploying", by="ada")
    await store.controls.pause(PauseScope.QUEUE, "other")
    return await enqueue(store, queue="mail")


@scenario(ReasonKind.TYPE_PAUSED)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.pause(PauseScope.TYPE, "work")
    return await enqueue(store)


@scenario(ReasonKind.TENANT_PAUSED)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.pause(PauseScope.TENANT, "acme", by="ada")
    return await enqueue(store, tenant_id="acme")


@scenario(ReasonKind.WAITS_FOR_PARENTS)
async def _(store: Store, clock: FakeClock) -> str:
    return await enqueue_after(store, await enqueue(store), await enqueue(store))


@scenario(ReasonKind.WAITS_IN_LINE)
async def _(store: Store, clock: FakeClock) -> str:
    await enqueue(store, order_key="account-1")
    return await enqueue(store, order_key="account-1")


@scenario(ReasonKind.WAITS_FOR_TIME)
async def _(store: Store, clock: FakeClock) -> str:
    return await enqueue(store, delay_ms=60_000)


@scenario(ReasonKind.SNOOZED)
async def _(store: Store, clock: FakeClock) -> str:
    lease = await running(store)
    await store.jobs.settle(OWNER, [snoozed(lease)])
    return lease.id


@scenario(ReasonKind.WAITS_FOR_RETRY)
async def _(store: Store, clock: FakeClock) -> str:
    lease = await running(store)
    await store.jobs.settle(OWNER, [failed(lease)])
    return lease.id


@scenario(ReasonKind.NO_WORKER)
async def _(store: Store, clock: FakeClock) -> str:
    await store.workers.forget(OWNER)
    return await enqueue(store)


@scenario(ReasonKind.NO_WORKER_FOR_TYPE)
async def _(store: Store, clock: FakeClock) -> str:
    beat(store, types=("other",))
    return await enqueue(store)


@scenario(ReasonKind.NO_WORKER_FOR_QUEUE)
async def _(store: Store, clock: FakeClock) -> str:
    beat(store, queues=("mail",))
    return await enqueue(store, queue="reports")


@scenario(ReasonKind.PRIORITY_EXCLUDED)
async def _(store: Store, clock: FakeClock) -> str:
    await store.workers.forget(OWNER)
    beat(store, max_priority=4)
    return await enqueue(store, priority=5)


@scenario(ReasonKind.WORKERS_SILENT)
async def _(store: Store, clock: FakeClock) -> str:
    clock.advance(seconds=31)
    return await enqueue(store)


@scenario(ReasonKind.WORKERS_DRAINING)
async def _(store: Store, clock: FakeClock) -> str:
    beat(store, state="draining")
    return await enqueue(store)


@scenario(ReasonKind.WORKERS_STUCK)
async def _(store: Store, clock: FakeClock) -> str:
    beat(store, poll_age_ms=10_001)
    return await enqueue(store)


@scenario(ReasonKind.BREAKER_OPEN)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.define_breakers([OPENS_AT_ONCE])
    await store.jobs.settle(OWNER, [failed(await running(store), retry_in_ms=3_600_000)])
    return await enqueue(store)


@scenario(ReasonKind.BREAKER_PROBING)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.define_breakers([OPENS_AT_ONCE])
    await store.jobs.settle(OWNER, [failed(await running(store), retry_in_ms=3_600_000)])
    clock.advance(seconds=30)
    beat(store)
    await running(store)
    return await enqueue(store)


@scenario(ReasonKind.LIMIT_FULL)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.set_limits([a_limit("key", "openai", 1), a_limit("key", "else", 1)])
    await running(store, limit_key="openai")
    return await enqueue(store, limit_key="openai")


@scenario(ReasonKind.RATE_USED_UP)
async def _(store: Store, clock: FakeClock) -> str:
    await store.controls.set_limits([a_limit("type", "work", 1, 60_000)])
    await running(store)
    return await enqueue(store)


@scenario(ReasonKind.WORKERS_BUSY)
async def _(store: Store, clock: FakeClock) -> str:
    beat(store, running=10)
    return await enqueue(store)


@scenario(ReasonKind.TENANTS_TURN)
async def _(store: Store, clock: FakeClock) -> str:
    await enqueue(store, tenant_id="globex")
    return await enqueue(store, tenant_id="acme")


@scenario(ReasonKind.JOBS_AHEAD)
async def _(store: Store, clock: FakeClock) -> str:
    await enqueue(store, priority=1)
    return await enqueue(store, priority=9)


@scenario(ReasonKind.DUE)
async def _(store: Store, clock: FakeClock) -> str:
    job_id = await enqueue(store, delay_ms=1_000)
    clock.advance(seconds=2)
    return job_id


@scenario(ReasonKind.READY)
async def _(store: Store, clock: FakeClock) -> str:
    return await enqueue(store)
