"""Circuit breakers: shared by every worker, moved by how executions end."""

import pytest
from msgspec.structs import replace

from penstock.model.controls import Breaker, BreakerPosition, BreakerState
from penstock.model.failure import Failure
from penstock.model.job import Lease
from penstock.model.outcome import Settlement
from penstock.model.retry import ErrorClass
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    LEASE_MS,
    OTHER,
    OWNER,
    Ending,
    a_claim,
    a_job,
    buried,
    claim_all,
    claim_one,
    completed,
    crashed,
    failed,
    handed_back,
    snoozed,
)

COOL_DOWN = 30
STRIPE = Breaker(name="stripe", types=("work",), failures=3, cool_down_ms=COOL_DOWN * 1000)


def down(lease: Lease) -> Settlement:
    """The dependency did not answer."""
    failure = Failure(ErrorClass.TRANSIENT_NETWORK, "ConnectionError", "no answer", "", "net")
    return replace(failed(lease, 3_600_000), failure=failure)


def wrong(lease: Lease) -> Settlement:
    """The dependency answered, and refused."""
    failure = Failure(ErrorClass.VALIDATION_ERROR, "ValueError", "no such card", "", "card")
    return replace(buried(lease), failure=failure)


async def state_of(store: Store) -> BreakerState:
    """The only breaker."""
    [state] = await store.controls.breakers()
    return state


async def opened(store: Store, jobs: int = 5) -> None:
    """A breaker that three failures opened, and more jobs behind it."""
    await store.controls.define_breakers([STRIPE])
    await store.jobs.enqueue([a_job() for _ in range(3 + jobs)])
    for lease in await claim_all(store, limit=3):
        await store.jobs.settle(OWNER, [down(lease)])


async def position(store: Store, clock: FakeClock) -> BreakerPosition:
    """Where the only breaker stands."""
    return (await state_of(store)).position(clock.now())


class TestBreakers:
    """Closed, open, half-open."""

    async def test_it_opens_after_so_many_failures_in_a_row(
        self, store: Store, clock: FakeClock
    ) -> None:
        await opened(store)
        assert await position(store, clock) is BreakerPosition.OPEN
        assert await claim_all(store, owner=OTHER) == []

    async def test_a_success_in_between_starts_the_count_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.controls.define_breakers([STRIPE])
        await store.jobs.enqueue([a_job() for _ in range(6)])
        for lease, ending in zip(
            await claim_all(store, limit=5), (down, down, completed, down, down), strict=True
        ):
            await store.jobs.settle(OWNER, [ending(lease)])
        assert await position(store, clock) is BreakerPosition.CLOSED
        assert (await state_of(store)).failed == 2

    async def test_failures_in_one_batch_count_one_by_one(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.controls.define_breakers([STRIPE])
        await store.jobs.enqueue([a_job() for _ in range(3)])
        await store.jobs.settle(OWNER, [down(lease) for lease in await claim_all(store)])
        assert await position(store, clock) is BreakerPosition.OPEN

    @pytest.mark.parametrize("ending", [wrong, snoozed, handed_back, crashed])
    async def test_what_says_nothing_of_the_dependency_does_not_count(
        self, store: Store, ending: Ending
    ) -> None:
        await store.controls.define_breakers([STRIPE])
        await store.jobs.enqueue([a_job() for _ in range(5)])
        for lease in await claim_all(store):
            await store.jobs.settle(OWNER, [ending(lease)])
        assert (await state_of(store)).failed == 0

    async def test_a_stale_settlement_has_no_say(self, store: Store, clock: FakeClock) -> None:
        await store.controls.define_breakers([replace(STRIPE, failures=1)])
        await store.jobs.enqueue([a_job()])
        lease = await claim_one(store)
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        await store.upkeep.rescue()
        await store.jobs.settle(OWNER, [down(lease)])
        assert await position(store, clock) is BreakerPosition.CLOSED

    async def test_other_types_go_on(self, store: Store) -> None:
        await opened(store)
        await store.jobs.enqueue([a_job(type="free")])
        assert [lease.type for lease in await claim_all(store, types=("work", "free"))] == ["free"]

    async def test_a_claim_says_when_it_will_try_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await opened(store)
        clock.advance(seconds=10)
        waits = (await store.jobs.claim(a_claim())).next_due_in_ms
        assert waits == (COOL_DOWN - 10) * 1000

    async def test_half_open_it_lets_one_job_through(self, store: Store, clock: FakeClock) -> None:
        await opened(store)
        clock.advance(seconds=COOL_DOWN)
        assert await position(store, clock) is BreakerPosition.HALF_OPEN
        probe = await claim_one(store)
        assert await claim_all(store, owner=OTHER) == []
        assert (await state_of(store)).probe_id == probe.id

    async def test_it_closes_when_the_probe_succeeds(self, store: Store, clock: FakeClock) -> None:
        await opened(store)
        clock.advance(seconds=COOL_DOWN)
        await store.jobs.settle(OWNER, [completed(await claim_one(store))])
        assert await position(store, clock) is BreakerPosition.CLOSED
        assert len(await claim_all(store)) == 4

    async def test_it_closes_when_the_probe_was_answered_with_a_refusal(
        self, store: Store, clock: FakeClock
    ) -> None:
        await opened(store)
        clock.advance(seconds=COOL_DOWN)
        await store.jobs.settle(OWNER, [wrong(await claim_one(store))])
        assert await position(store, clock) is BreakerPosition.CLOSED

    async def test_it_opens_again_when_the_probe_fails(
        self, store: Store, clock: FakeClock
    ) -> None:
        await opened(store)
        clock.advance(seconds=COOL_DOWN)
        await store.jobs.settle(OWNER, [down(await claim_one(store))])
        assert await position(store, clock) is BreakerPosition.OPEN
        clock.advance(seconds=COOL_DOWN - 1)
        assert await claim_all(store) == []
        clock.advance(seconds=1)
        assert len(await claim_all(store)) == 1

    @pytest.mark.parametrize("ending", [snoozed, handed_back, crashed])
    async def test_a_probe_that_said_nothing_is_followed_by_another(
        self, store: Store, clock: FakeClock, ending: Ending
    ) -> None:
        await opened(store)
        clock.advance(seconds=COOL_DOWN)
        await store.jobs.settle(OWNER, [ending(await claim_one(store))])
        assert await position(store, clock) is BreakerPosition.HALF_OPEN
        assert len(await claim_all(store)) == 1

    async def test_a_probe_that_is_lost_with_its_lease_is_followed_by_another(
        self, store: Store, clock: FakeClock
    ) -> None:
        await opened(store)
        clock.advance(seconds=COOL_DOWN)
        lost = await claim_one(store)
        clock.advance(seconds=LEASE_MS / 1000 + 1)
        await store.upkeep.rescue()
        assert len(await claim_all(store, owner=OTHER)) == 1
        await store.jobs.settle(OWNER, [completed(lost)])
        assert await position(store, clock) is BreakerPosition.HALF_OPEN

    async def test_late_results_of_earlier_executions_do_not_close_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.controls.define_breakers([STRIPE])
        await store.jobs.enqueue([a_job() for _ in range(4)])
        early, *rest = await claim_all(store)
        await store.jobs.settle(OWNER, [down(lease) for lease in rest])
        await store.jobs.settle(OWNER, [completed(early)])
        assert await position(store, clock) is BreakerPosition.OPEN

    async def test_an_operator_closes_it(self, store: Store, clock: FakeClock) -> None:
        await opened(store)
        assert await store.controls.reset_breaker("stripe")
        assert await position(store, clock) is BreakerPosition.CLOSED
        assert len(await claim_all(store)) == 5
        assert not await store.controls.reset_breaker("paypal")


class TestDefiningBreakers:
    """What applications say of breakers, each for its own types."""

    async def test_defining_it_again_keeps_its_position(
        self, store: Store, clock: FakeClock
    ) -> None:
        await opened(store)
        await store.controls.define_breakers([replace(STRIPE, failures=9)])
        assert await position(store, clock) is BreakerPosition.OPEN
        assert (await state_of(store)).breaker.failures == 9

    async def test_types_of_other_applications_stay_guarded(self, store: Store) -> None:
        await store.controls.define_breakers([STRIPE], known_types=["work"])
        other = replace(STRIPE, types=("refund",))
        await store.controls.define_breakers([other], known_types=["refund", "mail"])
        assert (await state_of(store)).breaker.types == ("work", "refund")

    async def test_a_type_that_names_another_breaker_leaves_the_old_one(self, store: Store) -> None:
        await store.controls.define_breakers([STRIPE], known_types=["work"])
        renamed = replace(STRIPE, name="payments")
        await store.controls.define_breakers([renamed], known_types=["work"])
        assert (await state_of(store)).breaker.name == "payments"
