"""Leases and fences: who may still write, and how long a lease lasts."""

import pytest

from penstock.model.job import Lease
from penstock.model.states import Status
from penstock.store.contract import Report, Store
from penstock.testing.clock import FakeClock
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
    enqueue,
    failed,
    handed_back,
    held,
    job_of,
    picture,
    running,
    snoozed,
    status_of,
)

ENDINGS: list[Ending] = [completed, failed, snoozed, cancelled, buried, crashed, handed_back]


def _report(lease: Lease, fence: int | None = None) -> Report:
    return Report(
        id=lease.id,
        fence=lease.fence if fence is None else fence,
        progress_percent=50.0,
        checkpoint="[1]",
        logs=[(0, "info", "late")],
    )


async def _taken_away(store: Store, clock: FakeClock) -> Lease:
    """A lease that ran out, was rescued, and was granted to another worker."""
    lease = await running(store)
    clock.advance(seconds=61)
    assert len(await store.upkeep.rescue()) == 1
    assert (await claim_one(store, owner=OTHER)).id == lease.id
    return lease


class TestStaleWrites:
    """A late worker changes nothing, and is told so."""

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_settlement_after_the_lease_was_taken_away(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await _taken_away(store, clock)
        before = await picture(store, lease.id)
        assert await store.jobs.settle(OWNER, [ending(lease)]) == [lease.id]
        assert await picture(store, lease.id) == before

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_settlement_while_nobody_has_claimed_the_rescued_job(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await running(store)
        clock.advance(seconds=61)
        await store.upkeep.rescue()
        before = await picture(store, lease.id)
        assert await store.jobs.settle(OWNER, [ending(lease)]) == [lease.id]
        assert await picture(store, lease.id) == before

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_settlement_under_an_old_fence_of_the_same_owner(
        self, store: Store, ending: Ending
    ) -> None:
        old = await running(store)
        await store.upkeep.rescue(owner=OWNER)
        await claim_one(store)
        before = await picture(store, old.id)
        assert await store.jobs.settle(OWNER, [ending(old)]) == [old.id]
        assert await picture(store, old.id) == before

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_settlement_under_the_right_fence_by_another_owner(
        self, store: Store, ending: Ending
    ) -> None:
        lease = await running(store)
        before = await picture(store, lease.id)
        assert await store.jobs.settle(OTHER, [ending(lease)]) == [lease.id]
        assert await picture(store, lease.id) == before

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_settlement_after_a_rescue_ended_the_job(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await running(store)
        clock.advance(seconds=61)
        await store.upkeep.rescue(max_rescues=1)
        before = await picture(store, lease.id)
        assert await store.jobs.settle(OWNER, [ending(lease)]) == [lease.id]
        assert await picture(store, lease.id) == before

    @pytest.mark.parametrize("first", ENDINGS)
    async def test_a_second_settlement_of_one_lease_changes_nothing(
        self, store: Store, first: Ending
    ) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [first(lease)])
        before = await picture(store, lease.id)
        for second in ENDINGS:
            await store.jobs.settle(OWNER, [second(lease)])
            assert await picture(store, lease.id) == before, second

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_a_settlement_repeated_because_its_answer_was_lost_is_not_called_stale(
        self, store: Store, ending: Ending
    ) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [ending(lease)])
        assert await store.jobs.settle(OWNER, [ending(lease)]) == []

    async def test_a_report_after_the_lease_was_taken_away(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await _taken_away(store, clock)
        before = await picture(store, lease.id)
        assert await store.jobs.report(OWNER, [_report(lease)]) == [lease.id]
        assert await picture(store, lease.id) == before

    async def test_a_report_of_another_owner_or_fence(self, store: Store) -> None:
        lease = await running(store)
        before = await picture(store, lease.id)
        assert await store.jobs.report(OTHER, [_report(lease)]) == [lease.id]
        assert await store.jobs.report(OWNER, [_report(lease, lease.fence + 1)]) == [lease.id]
        assert await picture(store, lease.id) == before

    async def test_a_report_after_the_end(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [completed(lease)])
        before = await picture(store, lease.id)
        assert await store.jobs.report(OWNER, [_report(lease)]) == [lease.id]
        assert await picture(store, lease.id) == before

    async def test_a_renewal_after_the_lease_was_taken_away(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await _taken_away(store, clock)
        before = await picture(store, lease.id)
        assert store.leases.renew(OWNER, [held(lease, 10 * LEASE_MS)]).lost == [lease.id]
        assert await picture(store, lease.id) == before

    async def test_a_renewal_of_another_owner_or_an_old_fence(self, store: Store) -> None:
        old = await running(store)
        await store.upkeep.rescue(owner=OWNER)
        lease = await claim_one(store)
        before = await picture(store, lease.id)
        assert store.leases.renew(OWNER, [held(old, 10 * LEASE_MS)]).lost == [lease.id]
        assert store.leases.renew(OTHER, [held(lease, 10 * LEASE_MS)]).lost == [lease.id]
        assert await picture(store, lease.id) == before


class TestLateHolder:
    """A holder that is late, but from whom nothing was taken, still settles."""

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_it_may_settle_after_lease_until(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        lease = await running(store)
        clock.advance(seconds=600)
        assert await store.jobs.settle(OWNER, [ending(lease)]) == []
        assert await status_of(store, lease.id) is not Status.IN_PROGRESS

    async def test_it_may_report_and_renew_after_lease_until(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        clock.advance(seconds=600)
        assert await store.jobs.report(OWNER, [_report(lease)]) == []
        assert store.leases.renew(OWNER, [held(lease)]).lost == []
        assert await store.upkeep.rescue() == []

    async def test_a_claim_does_not_take_a_lapsed_lease(
        self, store: Store, clock: FakeClock
    ) -> None:
        await running(store)
        clock.advance(seconds=600)
        assert await claim_all(store, owner=OTHER) == []


class TestRenewal:
    """Renewing keeps a lease alive."""

    async def test_a_renewed_lease_outlives_its_first_term(
        self, store: Store, clock: FakeClock
    ) -> None:
        lease = await running(store)
        for _ in range(5):
            clock.advance(seconds=40)
            assert store.leases.renew(OWNER, [held(lease)]).lost == []
            assert await store.upkeep.rescue() == []
        assert (await job_of(store, lease.id)).lease_until == clock.now() + LEASE_MS
        clock.advance(seconds=61)
        assert len(await store.upkeep.rescue()) == 1

    async def test_only_the_lost_ones_are_named(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(3)])
        leases = await claim_all(store)
        await store.jobs.settle(OWNER, [handed_back(leases[1])])
        renewal = store.leases.renew(OWNER, [held(lease) for lease in leases])
        assert (renewal.lost, renewal.cancelled) == ([leases[1].id], [])

    async def test_all_that_an_owner_has_leased_is_known(self, store: Store) -> None:
        done, kept = await running(store), await running(store)
        await enqueue(store)
        await claim_all(store, owner=OTHER)
        await store.jobs.settle(OWNER, [completed(done)])
        assert store.leases.held(OWNER) == [kept.id]
        assert store.leases.held("host-c:3:idle") == []

    async def test_a_renewal_keeps_the_fence(self, store: Store) -> None:
        lease = await running(store)
        store.leases.renew(OWNER, [held(lease)])
        assert (await job_of(store, lease.id)).fence == lease.fence

    async def test_a_renewal_and_a_question_tell_of_cancellations(self, store: Store) -> None:
        stop, go_on = await running(store), await running(store)
        assert store.leases.cancel_requests(OWNER) == []
        await store.jobs.cancel([stop.id], "no")
        renewal = store.leases.renew(OWNER, [held(stop), held(go_on)])
        assert (renewal.lost, renewal.cancelled) == ([], [stop.id])
        assert store.leases.cancel_requests(OWNER) == [stop.id]
        assert store.leases.cancel_requests(OTHER) == []

    async def test_nothing_held_is_nothing_lost(self, store: Store) -> None:
        assert store.leases.renew(OWNER, []).lost == []

    async def test_a_type_may_have_longer_leases(self, store: Store, clock: FakeClock) -> None:
        await store.jobs.enqueue([a_job(type="short"), a_job(type="long")])
        await claim_all(store, types=("short", "long"), type_lease_ms={"long": 5 * LEASE_MS})
        clock.advance(seconds=61)
        assert [lost.type for lost in await store.upkeep.rescue()] == ["short"]
        clock.advance(seconds=240)
        assert [lost.type for lost in await store.upkeep.rescue()] == ["long"]


class TestWallClock:
    """Leases are measured by a clock that nobody sets."""

    @pytest.mark.parametrize("wall", ["2020-01-01T00:00:00Z", "2040-01-01T00:00:00Z"])
    async def test_moving_the_wall_clock_expires_no_lease(
        self, store: Store, clock: FakeClock, wall: str
    ) -> None:
        lease = await running(store)
        clock.set_wall(wall)
        assert await store.upkeep.rescue() == []
        assert store.leases.renew(OWNER, [held(lease)]).lost == []

    async def test_a_wall_clock_set_back_keeps_no_lease_alive(
        self, store: Store, clock: FakeClock
    ) -> None:
        await running(store)
        clock.set_wall("2020-01-01T00:00:00Z")
        clock.advance(seconds=61)
        assert len(await store.upkeep.rescue()) == 1

    async def test_a_queued_job_is_claimed_after_the_wall_clock_was_set_back(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await enqueue(store)
        clock.set_wall("2020-01-01T00:00:00Z")
        assert (await claim_one(store)).id == job_id
