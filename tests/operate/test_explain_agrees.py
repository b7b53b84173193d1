"""What is explained agrees with what a claim then does, whatever happened before."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.model.controls import PauseScope
from penstock.model.explain import ReasonKind
from penstock.operate.explain import explain
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    buried,
    claim_all,
    completed,
    enqueue,
    failed,
    handed_back,
    snoozed,
)
from tests.app.scenarios import OPENS_AT_ONCE, a_limit, beat

PASSES = {ReasonKind.READY, ReasonKind.DUE, ReasonKind.JOBS_AHEAD, ReasonKind.TENANTS_TURN}
TYPES = ("work", "other")
Steps = list[tuple[str, Any]]
EXAMPLES = settings(
    max_examples=100,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
FIELDS = {
    "type": st.sampled_from(TYPES),
    "queue": st.sampled_from(("default", "mail")),
    "tenant_id": st.sampled_from(("", "acme", "globex")),
    "priority": st.sampled_from((1, 5, 9)),
    "delay_ms": st.sampled_from((0, 0, 0, 5_000)),
    "expires_in_ms": st.sampled_from((None, None, 1_000, 60_000)),
}
MORE_FIELDS = FIELDS | {
    "expires_in_ms": st.none(),  # a claim buries what has expired, and that moves a line on
    "limit_key": st.sampled_from((None, "a", "b")),
    "order_key": st.sampled_from((None, None, "x")),
}
ENDINGS = st.sampled_from((completed, failed, snoozed, buried, handed_back))
PAUSES = st.sampled_from((("queue", "mail"), ("type", "other"), ("tenant", "acme"), ("job", "")))
FREE = st.one_of(
    st.tuples(st.just("enqueue"), st.fixed_dictionaries(FIELDS)),
    st.tuples(st.just("pause"), PAUSES),
    st.tuples(st.just("resume"), PAUSES),
    st.tuples(st.just("work"), ENDINGS),
    st.tuples(st.just("advance"), st.sampled_from((1, 10, 40))),
)
BOUND = st.one_of(
    st.tuples(st.just("enqueue"), st.fixed_dictionaries(MORE_FIELDS)),
    st.tuples(st.just("limit"), st.sampled_from((("key", "a"), ("type", "work"), ("queue", "*")))),
    st.tuples(st.just("rate"), st.sampled_from((("key", "b"), ("tenant", "globex")))),
    st.tuples(st.just("breaker"), st.none()),
    FREE,
)


async def hold(store: Store, step: str, scope: str, name: str) -> None:
    waiting = await store.reader.waiting(None, 1)
    if scope != "job":
        await getattr(store.controls, step)(PauseScope(scope), name)
    elif waiting:
        await getattr(store.controls, step)(PauseScope.JOB, waiting[0].id)


async def take(store: Store, clock: FakeClock, ids: list[str], step: str, what: Any) -> None:
    match step:
        case "enqueue":
            ids.append(await enqueue(store, **what))
        case "pause" | "resume":
            await hold(store, step, *what)
        case "limit":
            await store.controls.set_limits([a_limit(what[0], what[1], 1)])
        case "rate":
            await store.controls.set_limits([a_limit(what[0], what[1], 1, 30_000)])
        case "breaker":
            await store.controls.define_breakers([OPENS_AT_ONCE])
        case "work":
            for lease in await claim_all(store, types=TYPES, limit=2):
                await store.jobs.settle(OWNER, [what(lease)])
        case _:
            clock.advance(seconds=what)


async def told_and_claimed(steps: Steps) -> tuple[dict[str, set[ReasonKind]], set[str]]:
    """After all that, what is told of each job, and which of them a claim then takes."""
    clock = FakeClock()
    store = open_store("sqlite:///:memory:", clock)
    await store.open()
    try:
        ids: list[str] = []
        for step, what in steps:
            await take(store, clock, ids, step, what)
        beat(store, types=TYPES)
        told = {}
        for job_id in ids:
            found = await store.reader.standing(job_id)
            assert found is not None
            told[job_id] = {reason.kind for reason in explain(found).reasons}
        leases = await claim_all(store, types=TYPES, limit=1_000)
        return told, {lease.id for lease in leases}
    finally:
        await store.close()


@EXAMPLES
@given(st.lists(FREE, min_size=3, max_size=12))
def test_a_claim_takes_all_that_has_no_reason_to_wait_and_nothing_else(steps: Steps) -> None:
    told, claimed = asyncio.run(told_and_claimed(steps))
    assert claimed == {job_id for job_id, kinds in told.items() if kinds <= PASSES}


@EXAMPLES
@given(st.lists(BOUND, min_size=5, max_size=16))
def test_under_limits_and_in_lines_a_claim_takes_nothing_that_has_a_reason_to_wait(
    steps: Steps,
) -> None:
    told, claimed = asyncio.run(told_and_claimed(steps))
    assert {job_id: told[job_id] - PASSES for job_id in claimed if told[job_id] - PASSES} == {}
