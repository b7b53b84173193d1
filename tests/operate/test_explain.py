"""Every reason is found in a real store that has it, and is told first where it is the only one."""

from collections.abc import AsyncIterator

import pytest

from penstock import JobNotFound, Penstock
from penstock.model.controls import PauseScope
from penstock.model.explain import Explanation, Reason, ReasonKind
from penstock.operate.explain import explain
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OTHER,
    OWNER,
    claim_one,
    completed,
    dead_job,
    enqueue,
    enqueue_after,
    failed,
    running,
    snoozed,
)
from tests.app.scenarios import OPENS_AT_ONCE, SCENARIOS, beat


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


OF_STORES = [kind for kind in ReasonKind if kind is not ReasonKind.NOT_ADMITTED]
"""A gate is the application's."""


async def look(store: Store, job_id: str) -> Explanation:
    standing = await store.reader.standing(job_id)
    assert standing is not None
    return explain(standing)


async def told(store: Store, clock: FakeClock, kind: ReasonKind) -> Reason:
    reasons = (await look(store, await SCENARIOS[kind](store, clock))).reasons
    return next(reason for reason in reasons if reason.kind is kind)


@pytest.mark.parametrize("kind", OF_STORES)
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


@pytest.mark.parametrize("kind", OF_STORES)
async def test_every_reason_is_a_sentence_a_person_can_act_on(
    kind: ReasonKind, store: Store, clock: FakeClock
) -> None:
    sentence = (await told(store, clock, kind)).sentence
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert sentence.endswith(".")
    assert "None" not in sentence
    assert "\n" not in sentence


async def test_a_pause_says_since_when_by_whom_and_how_to_end_it(
    store: Store, clock: FakeClock
) -> None:
    reason = await told(store, clock, ReasonKind.QUEUE_PAUSED)
    assert reason.sentence.startswith("Queue 'mail' has been paused since ")
    assert "by ada: deploying. Resume it with `penstock resume queue mail`." in reason.sentence
    assert (reason.by, reason.since_at) == ("ada", clock.now())


async def test_a_full_limit_names_the_jobs_that_hold_it(store: Store, clock: FakeClock) -> None:
    reason = await told(store, clock, ReasonKind.LIMIT_FULL)
    [holder] = reason.jobs
    assert "Key 'openai' may have 1 running at once, and 1 is: " in reason.sentence
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


async def test_a_job_that_failed_and_was_then_snoozed_is_snoozed(
    store: Store, clock: FakeClock
) -> None:
    lease = await running(store)
    await store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
    await store.jobs.settle(OWNER, [snoozed(await claim_one(store))])
    [reason] = (await look(store, lease.id)).reasons
    assert reason.kind is ReasonKind.SNOOZED


async def test_a_paused_job_still_says_what_it_waited_for(store: Store, clock: FakeClock) -> None:
    lease = await running(store)
    await store.jobs.settle(OWNER, [failed(lease)])
    await store.controls.pause(PauseScope.JOB, lease.id)
    kinds = [reason.kind for reason in (await look(store, lease.id)).reasons]
    assert kinds == [ReasonKind.JOB_PAUSED, ReasonKind.WAITS_FOR_RETRY]


async def test_long_words_of_others_stay_one_short_line(store: Store, clock: FakeClock) -> None:
    await store.controls.pause(PauseScope.TYPE, "work", reason="a\nb " * 500)
    [reason] = (await look(store, await enqueue(store))).reasons
    assert "\n" not in reason.sentence
    assert len(reason.sentence) < 400


async def test_an_application_explains_its_jobs(app: Penstock) -> None:
    @app.job
    async def later() -> None: ...

    job = await later.options(delay=60).enqueue()
    found = await app.explain(job.id)
    kinds = [reason.kind for reason in found.reasons]
    assert kinds == [ReasonKind.WAITS_FOR_TIME, ReasonKind.NO_WORKER]
    with pytest.raises(JobNotFound):
        await app.explain("01JD0000000000000000000000")


async def test_a_live_worker_is_told_by_its_name(store: Store, clock: FakeClock) -> None:
    reason = await told(store, clock, ReasonKind.RUNNING)
    [worker] = await store.workers.list()
    assert reason.workers == (worker.owner,)
    assert f"on worker {worker.name}." in reason.sentence
