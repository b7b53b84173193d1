"""A store's own life: opening, closing, and what is still there afterwards."""

from collections.abc import Awaitable, Callable

import pytest

from penstock.model.errors import PenstockError
from penstock.store.contract import Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    LEASE_MS,
    OTHER,
    OWNER,
    buried,
    claim_one,
    completed,
    enqueue,
    held,
    job_of,
    picture,
    running,
)


class TestLife:
    """Open, migrate, inspect, close."""

    async def test_the_store_uses_the_clock_it_was_given(
        self, store: Store, clock: FakeClock
    ) -> None:
        clock.set_wall("2031-05-05T00:00:00Z")
        assert store.clock is clock
        assert (await job_of(store, await enqueue(store))).created_at == clock.now()

    async def test_migrating_an_up_to_date_store_changes_nothing(self, store: Store) -> None:
        job_id = await enqueue(store)
        before, after = await store.migrate()
        assert before == after > 0
        assert (await claim_one(store)).id == job_id

    async def test_an_inspection_states_the_promise_and_its_checks(self, store: Store) -> None:
        found = await store.inspect()
        assert found.promise
        assert all(name and detail for name, _, detail in found.checks)

    async def test_it_says_whether_a_server_beside_it_answers_if_there_is_one(
        self, store: Store
    ) -> None:
        assert await store.dispatch_answers() in (True, None)

    async def test_a_closed_store_says_so(self, store: Store) -> None:
        await store.close()
        with pytest.raises(PenstockError):
            await enqueue(store)
        await store.close()


class TestDurability:
    """What was acknowledged is there when the installation is opened again."""

    async def test_jobs_and_their_history_survive(
        self, store: Store, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        dead, done = await running(store), await running(store)
        await store.jobs.settle(OWNER, [buried(dead), completed(done, "7")])
        waiting = await enqueue(store, delay_ms=5_000, key="k")
        ids = [dead.id, done.id, waiting]
        before = [await picture(store, job_id) for job_id in ids]
        again = await reopen()
        assert [await picture(again, job_id) for job_id in ids] == before

    async def test_unique_keys_survive(
        self, store: Store, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        holder = await enqueue(store, key="k")
        again = await reopen()
        assert await enqueue(again, key="k") == holder


class TestReboot:
    """No lease outlives the host that timed it.

    For stores that measure leases by the host's clock; one with a server's clock leaves this out.
    """

    async def test_a_reboot_expires_all_leases(
        self, store: Store, clock: FakeClock, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        clock.advance(seconds=1_000)
        lease = await running(store)
        store.leases.renew(OWNER, [held(lease, 10_000 * LEASE_MS)])
        clock.reboot()
        again = await reopen()
        assert [lost.id for lost in await again.upkeep.rescue()] == [lease.id]

    async def test_opening_again_without_a_reboot_expires_nothing(
        self, store: Store, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        lease = await running(store)
        again = await reopen()
        assert await again.upkeep.rescue() == []
        assert await again.jobs.settle(OWNER, [completed(lease)]) == []

    async def test_a_reboot_ends_every_leadership(
        self, store: Store, clock: FakeClock, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        await store.upkeep.lead("upkeep", OWNER, 1_000_000)
        clock.reboot()
        again = await reopen()
        assert await again.upkeep.lead("upkeep", OTHER, 1_000)
