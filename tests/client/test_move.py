import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from penstock.client.move import Mover, abandon, move
from penstock.model.errors import StoreUnavailable
from penstock.model.moves import (
    MoveIncomplete,
    MoveOvertaken,
    NoSuchMove,
    SameStore,
    SourceChanged,
    StoreMoved,
    StoreMoving,
    TargetInUse,
    WorkersAlive,
)
from penstock.model.states import Status
from penstock.store.contract import Bookmark, JobFilter, Page, Part, Row, Store, Tally, Transfer
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from penstock.testing.conformance.build import OWNER, claim_all, completed, enqueue, running
from penstock.testing.conformance.furnish import everything, furnish
from tests.client.scenarios import beat

Opened = Callable[[str], Awaitable[Store]]


@pytest.fixture
async def opened(clock: FakeClock) -> AsyncIterator[Opened]:
    """Open a store by its URL, or `memory`."""
    stores: list[Store] = []

    async def open_it(url: str) -> Store:
        store = open_store("sqlite:///:memory:" if url == "memory" else url, clock)
        await store.open(moving=True)
        stores.append(store)
        return store

    yield open_it
    for store in stores:
        await store.close()


@pytest.fixture
async def full(opened: Opened, clock: FakeClock) -> Store:
    store = await opened("memory")
    await furnish(store, clock)
    return store


@pytest.fixture
async def empty(opened: Opened) -> Store:
    return await opened("memory")


class Lost(Exception):
    """The connection went away."""


class Shaky:
    """A store's transfer that fails once, at a given call, before or after it is done."""

    def __init__(self, inner: Transfer, calls: list[int], *, after: bool) -> None:
        self._inner = inner
        self._calls = calls
        self._after = after

    async def _pass(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._calls[0] -= 1
        fails = self._calls[0] == 0
        if fails and not self._after:
            raise Lost
        answer = await call()
        if fails:
            raise Lost
        return answer

    async def tally(self) -> Tally:
        tally: Tally = await self._pass(self._inner.tally)
        return tally

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        page: Page = await self._pass(lambda: self._inner.page(part, after, limit))
        return page

    async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        return bool(await self._pass(lambda: self._inner.adopt(part, rows, bookmark)))

    async def marks(self) -> dict[str, str]:
        marks: dict[str, str] = await self._pass(self._inner.marks)
        return marks

    async def mark(self, changes: Mapping[str, str | None]) -> None:
        await self._pass(lambda: self._inner.mark(changes))

    async def clear(self) -> None:
        await self._pass(self._inner.clear)


class Through:
    """A store with another transfer."""

    def __init__(self, store: Store, transfer: Transfer) -> None:
        self._store = store
        self.transfer = transfer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def through(store: Store, transfer: Transfer) -> Store:
    return cast("Store", Through(store, transfer))


async def test_everything_is_in_the_other_store_and_the_old_one_says_where(
    full: Store, empty: Store
) -> None:
    before = await everything(full)
    moved = await Mover(full, empty).run()
    assert not moved.resumed
    assert moved.sent == sum(moved.tally.parts.values())
    after = await everything(empty)
    assert {part: after[part] for part in Part if part is not Part.METRICS} == {
        part: before[part] for part in Part if part is not Part.METRICS
    }
    assert await empty.transfer.marks() == {}
    assert "moved_to" in await full.transfer.marks()


async def test_a_store_that_was_moved_is_refused_by_its_new_url_without_the_password(
    tmp_path: Path, opened: Opened, clock: FakeClock
) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    store = await opened(url)
    await store.transfer.mark({"moved_to": "postgresql://ada:secret@db/work"})
    await store.close()
    with pytest.raises(StoreMoved) as refused:
        await open_store(url, clock).open()
    assert "postgresql://ada:***@db/work" in str(refused.value)
    assert "secret" not in str(refused.value)


async def test_a_store_stays_in_use_if_it_is_kept(full: Store, empty: Store) -> None:
    await Mover(full, empty, keep=True).run()
    assert await full.transfer.marks() == {}
    assert await everything(full) == await everything(empty)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_move_that_is_interrupted_anywhere_goes_on(
    clock: FakeClock, opened: Opened, after: bool
) -> None:
    full = await opened("memory")
    await furnish(full, clock)
    expected: dict[Part, list[Row]] | None = None
    interrupted_at = 0
    for interrupted_at in range(1, 400, 7):
        empty = await opened("memory")
        calls = [interrupted_at]
        shaky = [through(s, Shaky(s.transfer, calls, after=after)) for s in (full, empty)]
        try:
            await Mover(shaky[0], shaky[1], keep=True, page=10).run()
            assert calls[0] > 0
            break
        except Lost:
            moved = await Mover(full, empty, keep=True, page=10).run()
        expected = expected or await everything(full)
        found = await everything(empty)
        assert found == expected
        assert await empty.transfer.marks() == await full.transfer.marks() == {}
        assert moved.sent <= sum(moved.tally.parts.values())
        await empty.close()
    assert interrupted_at > 50


async def test_only_pages_that_are_missing_are_sent_again(full: Store, empty: Store) -> None:
    def stop(part: Part, done: int, total: int) -> None:
        if part is Part.LOGS:
            raise Lost

    with pytest.raises(Lost):
        await Mover(full, empty, show=stop, page=10).run()
    moved = await Mover(full, empty, page=10).run()
    already = moved.tally.parts[Part.JOBS] + moved.tally.parts[Part.EXECUTIONS]
    assert moved.resumed
    assert moved.sent == sum(moved.tally.parts.values()) - already


async def test_neither_store_is_opened_by_others_during_a_move(
    tmp_path: Path, opened: Opened, clock: FakeClock
) -> None:
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new")]
    old, new = [await opened(url) for url in urls]
    await enqueue(old)

    def stop(part: Part, done: int, total: int) -> None:
        raise Lost

    with pytest.raises(Lost):
        await Mover(old, new, show=stop).run()
    for url, word in zip(urls, ("is being moved to", "is being filled from"), strict=True):
        with pytest.raises(StoreMoving, match=word):
            await open_store(url, clock).open()


async def test_a_move_that_was_given_up_leaves_the_old_store_as_it_was(
    tmp_path: Path, opened: Opened, clock: FakeClock
) -> None:
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new")]
    old, new = [await opened(url) for url in urls]
    job_id = await enqueue(old)

    def stop(part: Part, done: int, total: int) -> None:
        if part is Part.LOGS:
            raise Lost

    with pytest.raises(Lost):
        await Mover(old, new, show=stop).run()
    await abandon(urls[0], urls[1], clock=clock)
    again = open_store(urls[0], clock)
    await again.open()
    assert [job.id for job in await again.reader.find(JobFilter())] == [job_id]
    await again.close()
    assert not any((await new.transfer.tally()).parts.values())
    with pytest.raises(NoSuchMove):
        await abandon(urls[0], urls[1], clock=clock)


async def test_a_move_can_be_given_up_when_its_target_is_gone(
    tmp_path: Path, opened: Opened, clock: FakeClock
) -> None:
    url, gone = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/none/new.db"
    old = await opened(url)
    await old.transfer.mark({"move": "one", "moving_to": gone})
    with pytest.raises(StoreUnavailable):
        await abandon(url, gone, clock=clock)
    assert await old.transfer.marks() == {}


async def test_a_store_is_not_moved_into_itself(
    tmp_path: Path, opened: Opened, clock: FakeClock
) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    await opened(url)
    (tmp_path / "link").symlink_to(tmp_path)
    for other in (url, f"sqlite:///{tmp_path}/link/work.db"):
        with pytest.raises(SameStore):
            await move(url, other, clock=clock)


async def test_a_store_that_holds_jobs_is_no_target_even_by_force(
    full: Store, empty: Store
) -> None:
    await enqueue(empty)
    for replace in (False, True):
        with pytest.raises(TargetInUse, match=r"1 jobs?"):
            await Mover(full, empty, force=True, replace=replace).run()
    assert await full.transfer.marks() == {}


async def test_what_an_application_declares_in_the_target_may_be_replaced(
    full: Store, empty: Store
) -> None:
    await empty.metrics.roll_up()
    limits = [state.limit for state in await full.controls.limits()]
    await empty.controls.set_limits(limits)
    with pytest.raises(TargetInUse, match="--replace"):
        await Mover(full, empty).run()
    await Mover(full, empty, replace=True).run()
    assert len(await empty.controls.limits()) == len(limits)


@pytest.mark.parametrize("side", ["source", "target"])
async def test_workers_that_are_alive_stop_a_move_unless_forced(
    full: Store, empty: Store, side: str, clock: FakeClock
) -> None:
    beat(full if side == "source" else empty)
    with pytest.raises(WorkersAlive, match="mailer"):
        await Mover(full, empty).run()
    await Mover(full, empty, force=True, keep=True).run()


async def test_workers_that_fell_silent_do_not(full: Store, empty: Store, clock: FakeClock) -> None:
    beat(full)
    clock.advance(seconds=31)
    await Mover(full, empty).run()


async def test_a_source_that_is_written_to_meanwhile_is_not_moved(
    full: Store, empty: Store
) -> None:
    class Meanwhile(Shaky):
        async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
            if part is Part.METRICS:
                await enqueue(full)
            return await super().adopt(part, rows, bookmark)

    busy = through(empty, Meanwhile(empty.transfer, [0], after=False))
    with pytest.raises(SourceChanged, match=r"jobs: \d+ -> \d+"):
        await Mover(full, busy).run()
    assert await full.transfer.marks() == {}
    assert not any((await empty.transfer.tally()).parts.values())
    await Mover(full, empty).run()


async def test_a_source_that_was_used_since_the_interruption_is_moved_anew(
    full: Store, empty: Store
) -> None:
    def stop(part: Part, done: int, total: int) -> None:
        if part is Part.DEPENDENCIES:
            raise Lost

    with pytest.raises(Lost):
        await Mover(full, empty, show=stop).run()
    await enqueue(full)
    with pytest.raises(SourceChanged):
        await Mover(full, empty).run()
    moved = await Mover(full, empty).run()
    assert not moved.resumed
    assert len(await everything(empty)) == len(Part)


async def test_a_difference_is_told_and_nothing_is_marked_as_moved(
    full: Store, empty: Store
) -> None:
    class Forgetful(Shaky):
        async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
            kept = rows[1:] if part is Part.LOGS else rows
            return await super().adopt(part, kept, bookmark)

    forgetful = through(empty, Forgetful(empty.transfer, [0], after=False))
    with pytest.raises(MoveIncomplete, match="logs: 10 -> 9"):
        await Mover(full, forgetful).run()
    assert "moved_to" not in await full.transfer.marks()


async def test_a_store_can_be_moved_on_and_back(opened: Opened, clock: FakeClock) -> None:
    first, second = await opened("memory"), await opened("memory")
    await furnish(first, clock)
    before = await everything(first)
    await Mover(first, second).run()
    with pytest.raises(StoreMoved):
        await Mover(first, second).run()
    with pytest.raises(TargetInUse, match="--replace"):
        await Mover(second, first).run()
    await Mover(second, first, replace=True).run()
    assert (await everything(first))[Part.JOBS] == before[Part.JOBS]
    assert await first.transfer.marks() == {}
    assert "moved_to" in await second.transfer.marks()


async def test_a_move_through_every_store_and_back_changes_nothing(
    opened: Opened, clock: FakeClock, postgres_store_url: str, valkey_url: str
) -> None:
    stores = [await opened(url) for url in ("memory", postgres_store_url, valkey_url)]
    await furnish(stores[0], clock)
    await stores[0].metrics.roll_up()
    before = await everything(stores[0])
    lease = await running(stores[0])
    tallies = []
    for source, target in ((0, 1), (1, 2), (2, 1), (1, 0)):
        moved = await Mover(stores[source], stores[target], replace=True, page=10).run()
        tallies.append(moved.tally)
    assert all(tally == tallies[0] for tally in tallies)
    assert await stores[0].jobs.settle(OWNER, [completed(lease)]) == []
    after = await everything(stores[0])
    for part in Part:
        if part not in (Part.JOBS, Part.EXECUTIONS, Part.METRICS):
            assert after[part] == before[part], part


async def test_moved_jobs_are_done(
    opened: Opened, clock: FakeClock, postgres_store_url: str
) -> None:
    source, target = await opened("memory"), await opened(postgres_store_url)
    ids = [await enqueue(source) for _ in range(50)]
    await Mover(source, target, page=20).run()
    leases = await claim_all(target)
    assert [lease.id for lease in leases] == ids
    assert await target.jobs.settle(OWNER, [completed(lease) for lease in leases]) == []
    assert {job.status for job in await target.reader.find(JobFilter(limit=99))} == {
        Status.COMPLETED
    }


async def test_a_url_of_one_tenant_is_no_installation(
    opened: Opened, postgres_store_url: str, empty: Store
) -> None:
    mark = "&" if "?" in postgres_store_url else "?"
    source = await opened(f"{postgres_store_url}{mark}tenant=acme")
    with pytest.raises(Exception, match=r"without \?tenant="):
        await source.transfer.tally()


KILLED = """
import asyncio, sys
from penstock.client.move import Mover
from penstock.store.contract import Part
from penstock.store.open import open_store

def show(part, done, total):
    if part is Part.JOBS and done >= 200:
        print("ready", flush=True)
        sys.stdin.read()

async def main():
    old, new = open_store(sys.argv[1]), open_store(sys.argv[2])
    await old.open(moving=True)
    await new.open(moving=True)
    await Mover(old, new, page=100, show=show).run()

asyncio.run(main())
"""


def killed_on_the_way(urls: list[str]) -> None:
    command = [sys.executable, "-c", KILLED, *urls]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()


async def test_a_move_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new")]
    old = open_store(urls[0])
    await old.open()
    for _ in range(500):
        await enqueue(old)
    await old.close()
    await asyncio.to_thread(killed_on_the_way, urls)
    moved = await move(*urls)
    assert moved.resumed
    assert moved.tally.parts[Part.JOBS] == 500
    assert moved.sent < 500


@pytest.mark.parametrize("kind", ["postgres_store_url", "valkey_url"])
async def test_rows_that_a_hand_has_spoilt_are_moved_as_far_as_they_go(
    opened: Opened, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    source = await opened(f"sqlite:///{tmp_path}/work.db")
    target = await opened(request.getfixturevalue(kind))
    ids = [await enqueue(source, tags=("a",)) for _ in range(4)]
    connection = cast("apsw.Connection", source.connection())
    spoil = "UPDATE jobs SET {} WHERE id = ?"
    connection.execute(spoil.format("payload = CAST(x'FF00' AS TEXT)"), (ids[0],))
    connection.execute(spoil.format("payload = 'not json'"), (ids[1],))
    connection.execute(spoil.format("error = 'nul ' || char(0) || ' in it'"), (ids[2],))
    connection.execute(spoil.format("tags = 'b'"), (ids[3],))
    connection.close()
    await Mover(source, target).run()
    jobs = {job.id: job for job in await target.reader.get(ids)}
    assert len(jobs) == 4
    assert "not json" in jobs[ids[1]].payload
    assert str(jobs[ids[2]].error).startswith("nul ")
    assert jobs[ids[3]].tags == ("b",)


async def test_a_second_process_on_the_same_move_stops(full: Store, empty: Store) -> None:
    class Overtaken(Shaky):
        async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
            if part is Part.EXECUTIONS:
                await Mover(full, empty).run()
            return await super().adopt(part, rows, bookmark)

    slow = through(empty, Overtaken(empty.transfer, [0], after=False))
    with pytest.raises(MoveOvertaken):
        await Mover(full, slow).run()
    assert await empty.transfer.marks() == {}
    tallies = [await store.transfer.tally() for store in (full, empty)]
    assert tallies[0] == tallies[1]


async def test_a_resumed_move_closes_the_old_store_again(full: Store, empty: Store) -> None:
    def stop(part: Part, done: int, total: int) -> None:
        if part is Part.LOGS:
            raise Lost

    class Watching(Shaky):
        async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
            assert "moving_to" in await full.transfer.marks()
            return await super().adopt(part, rows, bookmark)

    with pytest.raises(Lost):
        await Mover(full, empty, show=stop).run()
    await full.transfer.mark({"move": None, "moving_to": None})
    watched = through(empty, Watching(empty.transfer, [0], after=False))
    assert (await Mover(full, watched).run()).resumed
