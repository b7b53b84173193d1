"""Unique keys: who holds one, and until when."""

import pytest

from penstock.model.errors import KeyTaken
from penstock.model.job import Enqueued, KeyScope
from penstock.model.states import Status
from penstock.store.contract import Retention, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    Ending,
    a_job,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    dead_job,
    enqueue,
    failed,
    handed_back,
    running,
    snoozed,
    status_of,
)

EVERYTHING = Retention(
    keep_ms={Status.COMPLETED: 0, Status.CANCELLED: 0, Status.DEAD_LETTER: 0},
)


async def _again(store: Store, key: str = "k", **fields: object) -> Enqueued:
    [answer] = await store.jobs.enqueue([a_job(key=key, **fields)])
    return answer


class TestKeys:
    """A taken key answers with the job that has it."""

    async def test_a_tenant_that_is_erased_lets_all_of_its_keys_go(self, store: Store) -> None:
        for tenant in ("acme", "acme2", ""):
            for key in ("k", "k2", "k3"):
                window = {"key_scope": KeyScope.WINDOW, "key_window_ms": 10_000}
                await enqueue(store, tenant_id=tenant, key=key, **window)
        assert await store.upkeep.erase_keys("acme") == 3
        assert await store.upkeep.erase_keys("acme") == 0
        for tenant, created in (("acme", True), ("acme2", False), ("", False)):
            assert (await _again(store, tenant_id=tenant)).created is created

    async def test_a_taken_key_answers_with_its_holder(self, store: Store) -> None:
        holder = await enqueue(store, key="k")
        assert await _again(store) == Enqueued(holder, False)
        assert len(await claim_all(store)) == 1

    async def test_a_key_twice_in_a_batch_is_one_job(self, store: Store) -> None:
        first, second = a_job(key="k"), a_job(key="k")
        answers = await store.jobs.enqueue([first, second])
        assert answers == [Enqueued(first.id, True), Enqueued(first.id, False)]

    async def test_each_tenant_has_keys_of_its_own(self, store: Store) -> None:
        await enqueue(store, key="k", tenant_id="acme")
        assert (await _again(store, tenant_id="other")).created

    async def test_each_type_has_keys_of_its_own(self, store: Store) -> None:
        await enqueue(store, key="k")
        assert (await _again(store, type="other")).created

    async def test_a_key_without_a_scope_is_held_until_done(self, store: Store) -> None:
        lease = await running(store, key="k")
        assert not (await _again(store)).created
        await store.jobs.settle(OWNER, [completed(lease)])
        assert (await _again(store)).created


class TestWhilePending:
    """Held until the first claim, and never retaken."""

    async def test_it_is_held_while_the_job_waits_for_its_time(self, store: Store) -> None:
        await enqueue(store, key="k", key_scope=KeyScope.WHILE_PENDING, delay_ms=1_000)
        assert not (await _again(store, key_scope=KeyScope.WHILE_PENDING)).created

    async def test_it_is_released_at_the_first_claim(self, store: Store) -> None:
        await running(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        assert (await _again(store, key_scope=KeyScope.WHILE_PENDING)).created

    @pytest.mark.parametrize("ending", [failed, snoozed, crashed, handed_back])
    async def test_a_job_that_comes_back_does_not_retake_it(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        await store.jobs.settle(OWNER, [ending(lease)])
        assert (await _again(store, key_scope=KeyScope.WHILE_PENDING)).created
        clock.advance(seconds=2)
        assert len(await claim_all(store)) == 2

    async def test_it_is_released_when_the_waiting_job_is_cancelled(self, store: Store) -> None:
        holder = await enqueue(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        await store.jobs.cancel([holder], "no")
        assert (await _again(store, key_scope=KeyScope.WHILE_PENDING)).created

    async def test_a_successor_keeps_it_when_the_first_job_ends(self, store: Store) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.WHILE_PENDING)
        successor = await _again(store, key_scope=KeyScope.WHILE_PENDING)
        await store.jobs.settle(OWNER, [completed(lease)])
        assert await _again(store) == Enqueued(successor.id, False)


class TestUntilDone:
    """Held until the terminal state."""

    @pytest.mark.parametrize("ending", [failed, snoozed, crashed, handed_back])
    async def test_a_job_that_comes_back_still_holds_it(self, store: Store, ending: Ending) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.UNTIL_DONE)
        await store.jobs.settle(OWNER, [ending(lease)])
        assert await _again(store) == Enqueued(lease.id, False)

    @pytest.mark.parametrize("ending", [completed, cancelled, buried])
    async def test_every_terminal_settlement_releases_it(
        self, store: Store, ending: Ending
    ) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.UNTIL_DONE)
        await store.jobs.settle(OWNER, [ending(lease)])
        assert (await _again(store)).created

    async def test_a_stale_settlement_releases_nothing(self, store: Store) -> None:
        stale = await running(store, key="k")
        await store.upkeep.rescue(owner=OWNER)
        assert await store.jobs.settle(OWNER, [completed(stale)]) == [stale.id]
        assert await _again(store) == Enqueued(stale.id, False)

    async def test_a_stale_settlement_in_the_batch_does_not_keep_the_key_held(
        self, store: Store
    ) -> None:
        stale = await running(store, key="k")
        await store.upkeep.rescue(owner=OWNER)
        fresh = await claim_one(store)
        assert await store.jobs.settle(OWNER, [completed(stale), completed(fresh)]) == [stale.id]
        assert (await _again(store)).created

    async def test_cancelling_a_running_job_keeps_it_held_until_it_settles(
        self, store: Store
    ) -> None:
        lease = await running(store, key="k")
        await store.jobs.cancel([lease.id], "no")
        assert not (await _again(store)).created
        await store.jobs.settle(OWNER, [failed(lease)])
        assert (await _again(store)).created

    async def test_expiry_releases_it(self, store: Store, clock: FakeClock) -> None:
        await enqueue(store, key="k", expires_in_ms=10)
        clock.advance(seconds=1)
        await store.upkeep.expire()
        assert (await _again(store)).created

    async def test_a_rescue_that_ends_the_job_releases_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await running(store, key="k")
        clock.advance(seconds=61)
        await store.upkeep.rescue(max_rescues=1)
        assert (await _again(store)).created


class TestWindow:
    """Held for a time, whatever becomes of the job."""

    async def test_it_is_held_after_the_job_is_done(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.WINDOW, key_window_ms=10_000)
        await store.jobs.settle(OWNER, [completed(lease)])
        clock.advance(seconds=9)
        assert await _again(store) == Enqueued(lease.id, False)

    async def test_it_ends_with_the_window_though_the_job_still_waits(
        self, store: Store, clock: FakeClock
    ) -> None:
        await enqueue(store, key="k", key_scope=KeyScope.WINDOW, key_window_ms=10_000)
        clock.advance(seconds=11)
        assert (await _again(store)).created

    async def test_it_outlives_pruning(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.WINDOW, key_window_ms=10_000)
        await store.jobs.settle(OWNER, [completed(lease)])
        clock.advance(seconds=5)
        assert (await store.upkeep.prune(EVERYTHING)).jobs == 1
        assert await _again(store) == Enqueued(lease.id, False)
        clock.advance(seconds=6)
        assert (await _again(store)).created


class TestForever:
    """Held for good."""

    async def test_it_outlives_the_job_and_pruning(self, store: Store, clock: FakeClock) -> None:
        lease = await running(store, key="k", key_scope=KeyScope.FOREVER)
        await store.jobs.settle(OWNER, [completed(lease)])
        clock.advance(seconds=1_000_000)
        assert (await store.upkeep.prune(EVERYTHING)).jobs == 1
        assert await store.reader.get([lease.id]) == []
        assert await _again(store) == Enqueued(lease.id, False)


class TestRequeueWithKey:
    """A requeue takes the key again, or is refused."""

    async def test_a_requeued_job_holds_its_key_again(self, store: Store) -> None:
        job_id = await dead_job(store, key="k")
        await store.jobs.requeue([job_id])
        assert await _again(store) == Enqueued(job_id, False)

    async def test_a_taken_key_refuses_the_requeue_and_names_the_holder(self, store: Store) -> None:
        job_id = await dead_job(store, key="k")
        holder = await enqueue(store, key="k")
        with pytest.raises(KeyTaken) as refused:
            await store.jobs.requeue([job_id])
        assert refused.value.holder == holder
        assert await status_of(store, job_id) is Status.DEAD_LETTER

    async def test_a_key_that_lasts_for_ever_does_not_refuse_its_own_job(
        self, store: Store
    ) -> None:
        job_id = await dead_job(store, key="k", key_scope=KeyScope.FOREVER)
        assert await store.jobs.requeue([job_id]) == [job_id]

    async def test_one_taken_key_refuses_the_whole_batch(self, store: Store) -> None:
        free, blocked = await dead_job(store), await dead_job(store, key="k")
        await enqueue(store, key="k")
        with pytest.raises(KeyTaken):
            await store.jobs.requeue([free, blocked])
        assert await status_of(store, free) is Status.DEAD_LETTER
