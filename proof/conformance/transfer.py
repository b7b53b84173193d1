"""A whole installation read out of one store and written into another is the same there."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from penstock.model.states import Status
from penstock.model.transfer import MOVE, MOVED_TO, StoreMoved
from penstock.store.contract import Bookmark, JobFilter, Part, Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    claim_all,
    claim_one,
    completed,
    enqueue,
    enqueue_after,
    job_of,
    running,
    status_of,
)
from proof.conformance.furnish import TYPES, copy, everything, furnish, read_out


class Beside:
    """A second store stands beside the one that is tested."""

    @pytest.fixture
    async def other(self, clock: FakeClock) -> AsyncIterator[Store]:
        """A store in memory."""
        store = open_store("sqlite:///:memory:", clock)
        await store.open()
        yield store
        await store.close()


class Pair(Beside):
    """The tests of a way from one store to another."""

    @pytest.fixture
    def source(self, store: Store) -> Store:
        """Where everything is."""
        return store

    @pytest.fixture
    def target(self, other: Store) -> Store:
        """Where it goes."""
        return other

    async def test_everything_arrives_as_it_was(
        self, source: Store, target: Store, clock: FakeClock
    ) -> None:
        await furnish(source, clock)
        await copy(source, target)
        assert all((await source.transfer.tally()).parts.values())
        there = await everything(target)
        for part, rows in (await everything(source)).items():
            assert there[part] == rows, part

    async def test_both_count_the_same(
        self, source: Store, target: Store, clock: FakeClock
    ) -> None:
        await furnish(source, clock)
        await copy(source, target)
        tally = await source.transfer.tally()
        assert await target.transfer.tally() == tally
        assert tally.parts[Part.JOBS] == sum(tally.statuses.values())
        assert tally.fences > tally.attempts > 0

    async def test_everybody_sees_the_same(
        self, source: Store, target: Store, clock: FakeClock
    ) -> None:
        await furnish(source, clock)
        await copy(source, target)
        jobs = [await s.reader.find(JobFilter(limit=500)) for s in (source, target)]
        assert jobs[0] == jobs[1]
        assert await source.metrics.depths() == await target.metrics.depths()
        assert await source.controls.limits() == await target.controls.limits()
        assert await source.controls.breakers() == await target.controls.breakers()
        assert await source.controls.pauses() == await target.controls.pauses()
        assert await source.schedules.known() == await target.schedules.known()
        assert await source.schedules.due() == await target.schedules.due()
        assert await source.metrics.dead_count() == await target.metrics.dead_count()
        assert await source.dead.groups() == await target.dead.groups()
        assert await source.metrics.window(60_000) == await target.metrics.window(60_000)
        assert sorted(await source.metrics.totals()) == sorted(await target.metrics.totals())
        for job in jobs[0]:
            seen = [await s.reader.executions(job.id) for s in (source, target)]
            assert seen[0] == seen[1]
            lines = [await s.reader.logs(job.id) for s in (source, target)]
            assert lines[0] == lines[1]

    async def test_jobs_are_claimed_in_the_same_order(
        self, source: Store, target: Store, clock: FakeClock
    ) -> None:
        await furnish(source, clock)
        await copy(source, target)
        clock.advance(seconds=3_600)
        orders = [
            [lease.id for lease in await claim_all(store, types=TYPES, limit=500)]
            for store in (source, target)
        ]
        assert len(orders[0]) > 10
        assert orders[0] == orders[1]

    async def test_a_holder_may_settle_where_its_lease_went(
        self, source: Store, target: Store
    ) -> None:
        lease = await running(source)
        await copy(source, target)
        assert await target.jobs.settle(OWNER, [completed(lease)]) == []
        assert await status_of(target, lease.id) is Status.COMPLETED

    async def test_a_lease_lasts_as_long_as_it_would_have(
        self, source: Store, target: Store, clock: FakeClock
    ) -> None:
        lease = await running(source)
        clock.advance(seconds=40)
        await copy(source, target)
        clock.advance(seconds=19)
        assert await target.upkeep.rescue() == []
        clock.advance(seconds=2)
        assert [taken.id for taken in await target.upkeep.rescue()] == [lease.id]
        assert (await job_of(target, lease.id)).fence == lease.fence + 1

    async def test_a_fence_goes_on_from_where_it_was(self, source: Store, target: Store) -> None:
        lease = await running(source)
        await copy(source, target)
        await target.upkeep.rescue(owner=OWNER)
        assert (await claim_one(target)).fence > lease.fence
        assert await target.jobs.settle(OWNER, [completed(lease)]) == [lease.id]

    async def test_a_child_still_waits_for_its_parent(self, source: Store, target: Store) -> None:
        parent = await running(source)
        child = await enqueue_after(source, parent.id)
        await copy(source, target)
        assert await claim_all(target) == []
        await target.jobs.settle(OWNER, [completed(parent)])
        assert (await claim_one(target)).id == child
        assert await target.upkeep.release() == 0

    async def test_a_key_is_still_taken(self, source: Store, target: Store) -> None:
        holder = await enqueue(source, key="k", delay_ms=60_000)
        await copy(source, target)
        assert await enqueue(target, key="k") == holder

    async def test_figures_of_old_steps_are_not_folded_anew(
        self, source: Store, target: Store, clock: FakeClock
    ) -> None:
        minute, hour = 60, 3_600
        clock.advance(seconds=minute - clock.now() / 1000 % minute)
        for _ in range(2):
            await source.jobs.settle(OWNER, [completed(await running(source))])
            clock.advance(seconds=30)
        # By now the fine step of the first one is dropped, and that of the second is not.
        clock.advance(seconds=hour - 45)
        await copy(source, target)
        await target.metrics.roll_up()
        assert (await target.metrics.window(2 * hour * 1000))[0].completed == 2


class TestReadingOut(Pair):
    """From this store into another."""


class TestAdopting(Pair):
    """From another store into this one."""

    @pytest.fixture
    def source(self, other: Store) -> Store:
        """Where everything is."""
        return other

    @pytest.fixture
    def target(self, store: Store) -> Store:
        """Where it goes."""
        return store


class TestSnapshots:
    """One moment of a store, read out while everything goes on."""

    @pytest.fixture(autouse=True)
    def _in_memory(self, store: Store) -> None:
        if store.url.endswith(":memory:"):
            pytest.skip("what is in memory has no second connection")

    async def test_a_snapshot_sees_nothing_that_was_done_after_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await furnish(store, clock)
        lease = await running(store)
        before, tally = await everything(store), await store.transfer.tally()
        async with store.snapshot() as moment:
            await store.jobs.settle(OWNER, [completed(lease)])
            await enqueue(store)
            assert await moment.tally() == tally
            assert await read_out(moment) == before
        assert await store.transfer.tally() != tally

    async def test_a_snapshot_knows_of_moves(self, store: Store) -> None:
        await store.transfer.mark({MOVED_TO: "elsewhere"})
        async with store.snapshot() as moment:
            await store.transfer.mark({MOVED_TO: None})
            assert await moment.marks() == {MOVED_TO: "elsewhere"}


class TestBookmarks(Beside):
    """What a store remembers of a move."""

    async def test_a_page_sent_again_changes_nothing(self, store: Store, other: Store) -> None:
        await enqueue(other)
        page = await other.transfer.page(Part.JOBS, None, 10)
        await store.transfer.mark({MOVE: "one"})
        bookmark = Bookmark("one", None, "done")
        assert await store.transfer.adopt(Part.JOBS, page.rows, bookmark)
        tally = await store.transfer.tally()
        assert not await store.transfer.adopt(Part.JOBS, page.rows, bookmark)
        assert await store.transfer.tally() == tally

    async def test_a_page_of_another_move_is_refused(self, store: Store, other: Store) -> None:
        await enqueue(other)
        page = await other.transfer.page(Part.JOBS, None, 10)
        await store.transfer.mark({MOVE: "one"})
        assert not await store.transfer.adopt(Part.JOBS, page.rows, Bookmark("two", None, "done"))
        assert (await store.transfer.tally()).parts[Part.JOBS] == 0

    async def test_a_bookmark_is_written_with_its_page(self, store: Store, other: Store) -> None:
        for _ in range(3):
            await enqueue(other)
        page = await other.transfer.page(Part.JOBS, None, 2)
        assert page.after is not None
        await store.transfer.mark({MOVE: "one"})
        await store.transfer.adopt(Part.JOBS, page.rows, Bookmark("one", None, page.after))
        assert (await store.transfer.marks())[Part.JOBS] == page.after
        rest = await other.transfer.page(Part.JOBS, page.after, 2)
        assert await store.transfer.adopt(Part.JOBS, rest.rows, Bookmark("one", page.after, "done"))
        found = await store.reader.find(JobFilter())
        assert found == await other.reader.find(JobFilter())

    async def test_marks_are_written_and_removed_together(self, store: Store) -> None:
        await store.transfer.mark({"a": "1", "b": "2"})
        await store.transfer.mark({"a": None, "b": "3", "c": "4"})
        assert await store.transfer.marks() == {"b": "3", "c": "4"}

    async def test_a_cleared_store_is_as_new(self, store: Store, clock: FakeClock) -> None:
        await furnish(store, clock)
        await store.transfer.mark({MOVED_TO: "elsewhere"})
        await store.transfer.clear()
        tally = await store.transfer.tally()
        assert not any(tally.parts.values())
        assert await store.transfer.marks() == {}
        assert await store.metrics.depths() == []
        assert await store.schedules.known() == []
        job_id = await enqueue(store)
        assert (await claim_one(store)).id == job_id

    async def test_a_store_that_was_moved_away_is_not_opened(
        self, store: Store, reopen: Callable[[], Awaitable[Store]]
    ) -> None:
        await store.transfer.mark({MOVED_TO: "redis://else:6379"})
        with pytest.raises(StoreMoved, match="redis://else:6379"):
            await reopen()

    async def test_a_page_of_large_records_is_shorter(self, store: Store) -> None:
        payload = f'{{"text":"{"x" * 900_000}"}}'
        for _ in range(12):
            await enqueue(store, payload=payload)
        for _ in range(300):
            await enqueue(store)
        page = await store.transfer.page(Part.JOBS, None, 1_000)
        assert 12 <= len(page.rows) < 312
        rest = await store.transfer.page(Part.JOBS, page.after, 1_000)
        assert len(page.rows) + len(rest.rows) == 312
