"""Every reason is found in a real store that has it, and is told first where it is the only one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from penstock import JobNotFound, Penstock
from penstock.client.explain import FINDERS, explain
from penstock.model.breaker import Breaker
from penstock.model.explain import Explanation, Reason, ReasonKind
from penstock.model.limits import Limit, LimitKind, LimitScope
from penstock.model.pause import PauseScope
from penstock.store.contract import Beat, Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from penstock.testing.conformance.build import (
    OTHER,
    OWNER,
    claim_all,
    completed,
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


@scenario(ReasonKind.WORKERS_STALE)
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


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store("sqlite:///:memory:", clock)
    await store.open()
    beat(store)
    yield store
    await store.close()


async def look(store: Store, job_id: str) -> Explanation:
    standing = await store.reader.standing(job_id)
    assert standing is not None
    return explain(standing)


async def told(store: Store, clock: FakeClock, kind: ReasonKind) -> Reason:
    reasons = (await look(store, await SCENARIOS[kind](store, clock))).reasons
    return next(reason for reason in reasons if reason.kind is kind)


@pytest.mark.parametrize("kind", ReasonKind)
async def test_every_reason_is_found_where_it_holds(
    kind: ReasonKind, store: Store, clock: FakeClock
) -> None:
    assert kind in SCENARIOS, f"build a scenario for {kind}"
    found = await look(store, await SCENARIOS[kind](store, clock))
    kinds = [reason.kind for reason in found.reasons]
    assert kind in kinds
    if kind is not ReasonKind.KEY_TAKEN:
        assert found.summary == found.reasons[0].sentence
        assert kinds[0] is kind or kind in {ReasonKind.DUE}


@pytest.mark.parametrize("kind", ReasonKind)
async def test_every_reason_is_a_sentence_a_person_can_act_on(
    kind: ReasonKind, store: Store, clock: FakeClock
) -> None:
    sentence = (await told(store, clock, kind)).sentence
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert sentence.endswith(".")
    assert "None" not in sentence
    assert "\n" not in sentence


def test_every_reason_has_a_finder() -> None:
    assert set(FINDERS) == set(ReasonKind) - {ReasonKind.READY}


async def test_a_pause_says_since_when_by_whom_and_how_to_end_it(
    store: Store, clock: FakeClock
) -> None:
    reason = await told(store, clock, ReasonKind.QUEUE_PAUSED)
    assert reason.sentence.startswith("Queue 'mail' is paused since ")
    assert "by ada: deploying. Resume it with `penstock resume queue mail`." in reason.sentence
    assert (reason.by, reason.since_at) == ("ada", clock.now())


async def test_a_full_limit_names_the_jobs_that_hold_it(store: Store, clock: FakeClock) -> None:
    reason = await told(store, clock, ReasonKind.LIMIT_FULL)
    [holder] = reason.jobs
    assert "Key 'openai' may run 1 at once, and 1 do" in reason.sentence
    assert holder in reason.sentence


async def test_parents_are_named_with_their_state(store: Store, clock: FakeClock) -> None:
    parents = [await enqueue(store) for _ in range(5)]
    child = await enqueue_after(store, *parents)
    [reason] = (await look(store, child)).reasons
    assert reason.sentence.startswith("It waits for 5 jobs to end first: work ")
    assert "(queued)" in reason.sentence
    assert "and 2 more" in reason.sentence
    assert set(reason.jobs) == set(parents)


async def test_the_last_parent_is_the_one_to_look_at(store: Store, clock: FakeClock) -> None:
    lease = await running(store)
    parent = await enqueue(store, delay_ms=60_000)
    child = await enqueue_after(store, lease.id, parent)
    await store.jobs.settle(OWNER, [completed(lease)])
    [reason] = (await look(store, child)).reasons
    assert reason.jobs == (parent,)
    assert f"penstock jobs explain {parent}" in reason.sentence


async def test_a_job_that_ended_has_no_other_reasons(store: Store, clock: FakeClock) -> None:
    await store.controls.pause(PauseScope.TYPE, "work")
    await store.controls.resume(PauseScope.TYPE, "work")
    dead = await dead_job(store)
    await store.controls.pause(PauseScope.TYPE, "work")
    clock.advance(seconds=3_600)
    found = await look(store, dead)
    assert [reason.kind for reason in found.reasons] == [ReasonKind.ENDED]
    assert f"penstock dead show {dead}" in found.summary


async def test_all_that_is_in_the_way_is_told_at_once(store: Store, clock: FakeClock) -> None:
    await store.controls.pause(PauseScope.QUEUE, "default")
    await store.workers.forget(OWNER)
    job_id = await enqueue(store, delay_ms=60_000)
    kinds = [reason.kind for reason in (await look(store, job_id)).reasons]
    assert kinds == [ReasonKind.QUEUE_PAUSED, ReasonKind.WAITS_FOR_TIME, ReasonKind.NO_WORKER]


async def test_one_able_worker_is_enough(store: Store, clock: FakeClock) -> None:
    beat(store, owner=OTHER, types=("other",), state="draining")
    found = await look(store, await enqueue(store))
    assert [reason.kind for reason in found.reasons] == [ReasonKind.READY]


async def test_a_key_that_is_free_again_is_no_reason(store: Store, clock: FakeClock) -> None:
    dead = await dead_job(store, key="k")
    await store.jobs.settle(OWNER, [completed(await running(store, key="k"))])
    assert [reason.kind for reason in (await look(store, dead)).reasons] == [ReasonKind.ENDED]


async def test_a_probe_that_is_over_holds_nobody_back(store: Store, clock: FakeClock) -> None:
    await store.controls.define_breakers([OPENS_AT_ONCE])
    await store.jobs.settle(OWNER, [failed(await running(store), retry_in_ms=3_600_000)])
    clock.advance(seconds=30)
    beat(store)
    found = await look(store, await enqueue(store))
    assert [reason.kind for reason in found.reasons] == [ReasonKind.READY]


async def test_an_application_explains_its_jobs(app: Penstock) -> None:
    @app.job
    async def later() -> None: ...

    job = await later.options(delay=60).enqueue()
    found = await app.explain(job.id)
    kinds = [reason.kind for reason in found.reasons]
    assert kinds == [ReasonKind.WAITS_FOR_TIME, ReasonKind.NO_WORKER]
    with pytest.raises(JobNotFound):
        await app.explain("01JD0000000000000000000000")
