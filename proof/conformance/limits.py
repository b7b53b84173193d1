"""Limits on concurrency: across a fleet, per type, key, tenant and queue."""

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.model.controls import EVERY, LimitKind, LimitScope
from penstock.model.errors import InvalidOption
from penstock.model.job import Lease
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof import LONG
from proof.conformance.build import (
    LEASE_MS,
    OTHER,
    OWNER,
    Ending,
    a_job,
    buried,
    cancelled,
    claim_all,
    claim_one,
    completed,
    crashed,
    failed,
    handed_back,
    snoozed,
)
from proof.conformance.fleet import FleetWalk, Member, at_once

FIELDS = {
    LimitScope.TYPE: "type",
    LimitScope.KEY: "limit_key",
    LimitScope.TENANT: "tenant_id",
    LimitScope.QUEUE: "queue",
}
SCOPES = list(LimitScope)


async def enqueue_many(store: Store, number: int, **fields: str) -> list[str]:
    """Enqueue jobs that are alike; their ids."""
    answers = await store.jobs.enqueue([a_job(**fields) for _ in range(number)])
    return [answer.id for answer in answers]


class TestConcurrency:
    """No more jobs run at once under a limit than it allows, whoever runs them."""

    @pytest.mark.parametrize("scope", SCOPES)
    async def test_no_more_are_leased_than_the_limit_allows(
        self, store: Store, scope: LimitScope
    ) -> None:
        await store.controls.set_limits([at_once(2, scope, "work")])
        await enqueue_many(store, 5, **{FIELDS[scope]: "work"})
        first, second = await claim_all(store)
        assert await claim_all(store, owner=OTHER) == []
        await store.jobs.settle(OWNER, [completed(first)])
        assert len(await claim_all(store, owner=OTHER)) == 1
        assert second.id != first.id

    @pytest.mark.parametrize("scope", [LimitScope.KEY, LimitScope.TENANT, LimitScope.QUEUE])
    async def test_a_full_limit_holds_nobody_else_back(
        self, store: Store, scope: LimitScope
    ) -> None:
        await store.controls.set_limits([at_once(1, scope, "narrow")])
        await enqueue_many(store, 3, **{FIELDS[scope]: "narrow"})
        await enqueue_many(store, 3, **{FIELDS[scope]: "wide"})
        assert len(await claim_all(store)) == 4

    @pytest.mark.parametrize("scope", [LimitScope.KEY, LimitScope.TENANT, LimitScope.QUEUE])
    async def test_a_limit_for_every_name_counts_each_for_itself(
        self, store: Store, scope: LimitScope
    ) -> None:
        await store.controls.set_limits([at_once(2, scope, EVERY), at_once(1, scope, "b")])
        for name in ("a", "b", "c"):
            await enqueue_many(store, 3, **{FIELDS[scope]: name})
        field = FIELDS[scope]
        assert Counter(getattr(lease, field) for lease in await claim_all(store)) == {
            "a": 2,
            "b": 1,
            "c": 2,
        }

    @pytest.mark.parametrize("scope", [LimitScope.KEY, LimitScope.TENANT])
    async def test_jobs_without_a_key_or_tenant_are_under_no_such_limit(
        self, store: Store, scope: LimitScope
    ) -> None:
        await store.controls.set_limits([at_once(1, scope, EVERY)])
        await enqueue_many(store, 4)
        assert len(await claim_all(store)) == 4

    async def test_all_limits_of_a_job_are_obeyed(self, store: Store) -> None:
        await store.controls.set_limits(
            [
                at_once(4, LimitScope.TYPE, "work"),
                at_once(3, LimitScope.QUEUE, "default"),
                at_once(2, LimitScope.KEY, "k"),
            ]
        )
        await enqueue_many(store, 5, limit_key="k")
        assert len(await claim_all(store)) == 2
        await enqueue_many(store, 5)
        [third] = await claim_all(store, owner=OTHER)
        assert third.limit_key is None
        await enqueue_many(store, 5, queue="other")
        assert [lease.queue for lease in await claim_all(store)] == ["other"]

    async def test_a_full_limit_of_one_kind_takes_nothing_of_another(self, store: Store) -> None:
        await store.controls.set_limits(
            [at_once(1, LimitScope.KEY, "k"), at_once(2, LimitScope.TYPE, "work")]
        )
        await enqueue_many(store, 3, limit_key="k")
        assert len(await claim_all(store)) == 1
        await enqueue_many(store, 3)
        assert len(await claim_all(store)) == 1

    async def test_the_state_of_a_limit_names_who_holds_it(self, store: Store) -> None:
        await store.controls.set_limits([at_once(2, LimitScope.TYPE, "work")])
        await enqueue_many(store, 3)
        held = {lease.id for lease in await claim_all(store)}
        [state] = await store.controls.limits()
        assert (state.used, set(state.holders)) == (2, held)


class TestSlotsEnd:
    """A slot dies with its lease, however that ends."""

    @pytest.mark.parametrize(
        "ending", [completed, failed, snoozed, cancelled, buried, crashed, handed_back]
    )
    async def test_every_ending_frees_the_slot(self, store: Store, ending: Ending) -> None:
        lease = await self._only_slot(store)
        await store.jobs.settle(OWNER, [ending(lease)])
        assert len(await claim_all(store, owner=OTHER)) == 1

    async def test_a_rescue_frees_the_slot(self, store: Store, clock: FakeClock) -> None:
        await self._only_slot(store)
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        assert await store.upkeep.rescue()
        assert len(await claim_all(store, owner=OTHER)) == 1

    async def test_a_cancelled_job_keeps_its_slot_until_it_settles(self, store: Store) -> None:
        lease = await self._only_slot(store)
        await store.jobs.cancel([lease.id], "stop")
        assert await claim_all(store, owner=OTHER) == []
        await store.jobs.settle(OWNER, [failed(lease)])
        assert len(await claim_all(store, owner=OTHER)) == 1

    async def test_a_late_settlement_frees_nothing_twice(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await self._only_slot(store)
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        await store.upkeep.rescue()
        assert len(await claim_all(store, owner=OTHER)) == 1
        await store.jobs.settle(OWNER, [completed(lease)])
        assert await claim_all(store) == []

    async def _only_slot(self, store: Store) -> Lease:
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        await enqueue_many(store, 3)
        return await claim_one(store)


class TestChangingLimits:
    """Limits change while everything runs; what runs already runs on."""

    async def test_a_raised_limit_holds_at_the_next_claim(self, store: Store) -> None:
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        await enqueue_many(store, 5)
        assert len(await claim_all(store)) == 1
        await store.controls.set_limits([at_once(3, LimitScope.TYPE, "work")])
        assert len(await claim_all(store)) == 2

    async def test_a_lowered_limit_starts_nothing_until_enough_have_ended(
        self, store: Store
    ) -> None:
        await store.controls.set_limits([at_once(3, LimitScope.TYPE, "work")])
        await enqueue_many(store, 5)
        first, second, third = await claim_all(store)
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        await store.jobs.settle(OWNER, [completed(first), completed(second)])
        assert await claim_all(store, owner=OTHER) == []
        await store.jobs.settle(OWNER, [completed(third)])
        assert len(await claim_all(store, owner=OTHER)) == 1

    async def test_a_limit_lowered_and_raised_again_forgets_nobody(self, store: Store) -> None:
        await store.controls.set_limits([at_once(3, LimitScope.TYPE, "work")])
        await enqueue_many(store, 9)
        assert len(await claim_all(store)) == 3
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        assert await claim_all(store) == []
        await store.controls.set_limits([at_once(4, LimitScope.TYPE, "work")])
        assert len(await claim_all(store, owner=OTHER)) == 1

    async def test_a_new_limit_counts_what_runs_already(self, store: Store) -> None:
        await enqueue_many(store, 9)
        assert len(await claim_all(store, limit=3)) == 3
        await store.controls.set_limits([at_once(3, LimitScope.TYPE, "work")])
        assert await claim_all(store, owner=OTHER) == []
        assert await claim_all(store) == []

    async def test_without_the_limit_everything_goes(self, store: Store) -> None:
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        await enqueue_many(store, 5)
        await claim_one(store)
        kind = LimitKind.CONCURRENCY
        assert await store.controls.remove_limit(LimitScope.TYPE, "work", kind)
        assert not await store.controls.remove_limit(LimitScope.TYPE, "work", kind)
        assert len(await claim_all(store)) == 4
        assert await store.controls.limits() == []

    async def test_code_leaves_the_limit_of_an_operator_alone(self, store: Store) -> None:
        await store.controls.set_limits([at_once(3, LimitScope.KEY, "k", by_operator=True)])
        await store.controls.set_limits([at_once(9, LimitScope.KEY, "k")])
        [state] = await store.controls.limits()
        assert (state.limit.capacity, state.limit.by_operator) == (3, True)
        await store.controls.set_limits([at_once(5, LimitScope.KEY, "k", by_operator=True)])
        [state] = await store.controls.limits()
        assert state.limit.capacity == 5

    async def test_a_limit_of_nothing_is_refused_and_none_of_the_call_is_set(
        self, store: Store
    ) -> None:
        with pytest.raises(InvalidOption):
            await store.controls.set_limits(
                [at_once(1, LimitScope.KEY, "k"), at_once(0, LimitScope.TYPE, "work")]
            )
        assert await store.controls.limits() == []


class TestFleet:
    """Workers that lease jobs in advance never run more than the limits allow, all together."""

    async def test_leases_taken_in_advance_wait_for_a_slot(self, store: Store) -> None:
        await store.controls.set_limits([at_once(2, LimitScope.TYPE, "work")])
        await enqueue_many(store, 6)
        member = Member(store, OWNER, ("work",), 10)
        await member.claim(ahead=2)
        assert (len(member.running), len(member.prefetched)) == (2, 4)
        await member.claim(ahead=2)
        assert len(member.running) == 2

    async def test_a_part_of_a_lease_in_advance_is_none(self, store: Store) -> None:
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        await enqueue_many(store, 3)
        member = Member(store, OWNER, ("work",), 10)
        await member.claim(ahead=0.9)
        assert (len(member.running), member.prefetched) == (1, [])

    async def test_leases_wait_on_when_the_limit_shrinks_under_them(self, store: Store) -> None:
        await store.controls.set_limits([at_once(4, LimitScope.TYPE, "work")])
        await enqueue_many(store, 12)
        one, two = (Member(store, owner, ("work",), 2) for owner in (OWNER, OTHER))
        await one.claim(ahead=2)
        await two.claim(ahead=2)
        assert len(one.running) == len(two.running) == 2
        await store.controls.set_limits([at_once(2, LimitScope.TYPE, "work")])
        for lease in list(one.running):
            await one.claim(ahead=2)
            await one.settle(lease, completed)
            await one.claim(ahead=2)
        assert len(one.running) + len(two.running) <= 2

    async def test_what_one_worker_holds_back_runs_in_the_end(self, store: Store) -> None:
        await store.controls.set_limits([at_once(1, LimitScope.TYPE, "work")])
        ids = await enqueue_many(store, 5)
        one, two = (Member(store, owner, ("work",), 5) for owner in (OWNER, OTHER))
        done = []
        for _ in range(20):
            for member in (one, two):
                await member.claim(ahead=1)
                for lease in list(member.running):
                    await member.settle(lease, completed)
                    done.append(lease.id)
        assert sorted(done) == sorted(ids)

    async def test_two_workers_that_each_have_a_slot_the_other_needs_do_not_wait_for_ever(
        self, store: Store
    ) -> None:
        one, two = (Member(store, owner, ("a", "b"), 1) for owner in (OWNER, OTHER))
        waits = [await enqueue_many(store, 1, type="b", limit_key="k")]
        waits.append(await enqueue_many(store, 1, type="a", limit_key="k"))
        await one.claim(ahead=1)
        waits.append(await enqueue_many(store, 1, type="a"))
        waits.append(await enqueue_many(store, 1, type="a", limit_key="k"))
        await two.claim(ahead=1)
        await store.controls.set_limits(
            [at_once(1, LimitScope.KEY, "k"), at_once(1, LimitScope.TYPE, "a")]
        )
        done = []
        for _ in range(6):
            for member in (one, two):
                await member.claim()
            for member in (one, two):
                for lease in list(member.running):
                    await member.settle(lease, completed)
                    done.append(lease.id)
        assert sorted(done) == sorted(job_id for ids in waits for job_id in ids)

    @given(seed=st.integers(0, 2**32), capacities=st.tuples(*[st.integers(1, 4)] * 3))
    @settings(
        max_examples=15 if LONG else 3,
        deadline=None,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    async def test_no_fleet_ever_runs_more_than_its_limits_allow(
        self, store: Store, seed: int, capacities: tuple[int, int, int]
    ) -> None:
        walk = FleetWalk(store, Random(seed), *capacities)
        await walk.set_up()
        for _ in range(60):
            await walk.step()
        await walk.finish()
