"""Limits on rates: never more starts in any window of the interval."""

from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.model.controls import EVERY, Limit, LimitKind, LimitScope
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof import LONG
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_claim,
    a_job,
    claim_all,
    completed,
    failed,
    handed_back,
)
from proof.conformance.limits import FIELDS, SCOPES, enqueue_many

_names = count()


def per(number: int, interval_ms: int, scope: LimitScope, name: str) -> Limit:
    """At most so many starts in so many milliseconds."""
    return Limit(
        scope=scope, name=name, kind=LimitKind.RATE, capacity=number, interval_ms=interval_ms
    )


class TestRates:
    """A rate counts starts, wherever they happen."""

    @pytest.mark.parametrize("scope", SCOPES)
    async def test_no_more_start_in_a_while_than_the_rate_allows(
        self, store: Store, clock: FakeClock, scope: LimitScope
    ) -> None:
        await store.controls.set_limits([per(2, 1_000, scope, "work")])
        await enqueue_many(store, 6, **{FIELDS[scope]: "work"})
        leases = await claim_all(store)
        assert len(leases) == 2
        await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
        clock.advance(seconds=0.999)
        assert await claim_all(store, owner=OTHER) == []
        clock.advance(seconds=0.001)
        assert len(await claim_all(store, owner=OTHER)) == 2

    async def test_a_claim_says_when_the_rate_lets_more_through(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.controls.set_limits([per(1, 60_000, LimitScope.TYPE, "work")])
        await enqueue_many(store, 2)
        await claim_all(store)
        clock.advance(seconds=45)
        assert (await store.jobs.claim(a_claim())).next_due_in_ms == 15_000
        [state] = await store.controls.limits()
        assert (state.used, state.frees_in_ms) == (1, 15_000)

    async def test_a_rate_for_every_name_counts_each_for_itself(self, store: Store) -> None:
        await store.controls.set_limits([per(1, 1_000, LimitScope.TENANT, EVERY)])
        for tenant in ("a", "b", "b"):
            await enqueue_many(store, 1, tenant_id=tenant)
        assert sorted(lease.tenant_id for lease in await claim_all(store)) == ["a", "b"]

    async def test_nothing_is_leased_in_advance_under_a_rate(self, store: Store) -> None:
        await store.controls.set_limits([per(9, 1_000, LimitScope.TYPE, "work")])
        await enqueue_many(store, 9)
        leases = await claim_all(store, limit=9, start=2, ahead=5)
        assert [lease.started_at is None for lease in leases] == [False, False]

    async def test_another_attempt_is_another_start(self, store: Store, clock: FakeClock) -> None:
        await store.controls.set_limits([per(2, 60_000, LimitScope.TYPE, "work")])
        await enqueue_many(store, 1)
        [lease] = await claim_all(store)
        await store.jobs.settle(OWNER, [failed(lease, 1)])
        clock.advance(seconds=1)
        [lease] = await claim_all(store)
        await store.jobs.settle(OWNER, [handed_back(lease)])
        assert await claim_all(store) == []

    async def test_a_changed_rate_counts_what_has_started(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.controls.set_limits([per(2, 1_000, LimitScope.TYPE, "work")])
        await enqueue_many(store, 9)
        assert len(await claim_all(store)) == 2
        await store.controls.set_limits([per(5, 1_000, LimitScope.TYPE, "work")])
        assert len(await claim_all(store)) == 3
        await store.controls.set_limits([per(1, 1_000, LimitScope.TYPE, "work")])
        assert await claim_all(store) == []
        await store.controls.remove_limit(LimitScope.TYPE, "work", LimitKind.RATE)
        assert len(await claim_all(store)) == 4

    async def test_a_clock_put_back_stops_nothing_for_longer_than_the_interval(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.controls.set_limits([per(1, 1_000, LimitScope.TYPE, "work")])
        await enqueue_many(store, 3)
        assert len(await claim_all(store)) == 1
        clock.set_wall(clock.now() - 3_600_000)
        clock.advance(seconds=2)
        assert len(await claim_all(store)) == 1

    async def test_both_kinds_of_limit_hold_together(self, store: Store, clock: FakeClock) -> None:
        at_once = Limit(scope=LimitScope.TYPE, name="work", kind=LimitKind.CONCURRENCY, capacity=2)
        await store.controls.set_limits([at_once, per(3, 1_000, LimitScope.TYPE, "work")])
        await enqueue_many(store, 9)
        first, second = await claim_all(store)
        await store.jobs.settle(OWNER, [completed(first), completed(second)])
        assert len(await claim_all(store)) == 1
        clock.advance(seconds=1)
        assert len(await claim_all(store)) == 1

    @given(seed=st.integers(0, 2**32), number=st.integers(1, 5), interval_ms=st.integers(1, 10_000))
    @settings(
        max_examples=15 if LONG else 3,
        deadline=None,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    async def test_no_window_of_the_interval_ever_holds_too_many_starts(
        self, store: Store, clock: FakeClock, seed: int, number: int, interval_ms: int
    ) -> None:
        random, type_ = Random(seed), f"type-{next(_names)}"
        await store.controls.set_limits([per(number, interval_ms, LimitScope.TYPE, type_)])
        await store.jobs.enqueue([a_job(type=type_) for _ in range(60)])
        starts: list[int] = []
        for _ in range(40):
            claimed = await store.jobs.claim(
                a_claim(owner=random.choice((OWNER, OTHER)), types=(type_,), limit=3)
            )
            starts += [clock.now()] * len(claimed.leases)
            wait = claimed.next_due_in_ms
            if wait is not None and random.random() < 0.5:
                clock.advance(seconds=wait / 1000)
                assert await claim_all(store, types=(type_,), limit=1), "it said there would be one"
                starts.append(clock.now())
            clock.advance(seconds=random.choice((0, 0.001, 0.01, interval_ms / 3000)))
        for first, later in zip(starts, starts[number:], strict=False):
            assert later - first >= interval_ms
