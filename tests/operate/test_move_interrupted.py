import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.model.transfer import (
    MoveOvertaken,
    NoSuchMove,
    SourceChanged,
    StoreMoving,
    TargetInUse,
)
from penstock.operate.move import Mover, abandon, move
from penstock.store.contract import Bookmark, JobFilter, Part, Row, Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import enqueue
from proof.conformance.furnish import everything, furnish
from tests.operate.moving import Lost, Opened, Shaky, through


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.thorough
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
            sent = await _sent_again(full, empty, after=after)
        expected = expected or await everything(full)
        found = await everything(empty)
        assert found == expected
        assert (await empty.transfer.marks()).keys() == {"came_by"}
        assert await full.transfer.marks() == {}
        assert sent <= sum(len(rows) for rows in expected.values())
        await empty.close()
    assert interrupted_at > 50


async def _sent_again(full: Store, empty: Store, *, after: bool) -> int:
    """Go on with a move; where only its very last answer was lost, it is over and says so."""
    marks = {**await full.transfer.marks(), **await empty.transfer.marks()}
    if not (after and marks.keys() == {"came_by"}):
        return (await Mover(full, empty, keep=True, page=10).run()).sent
    with pytest.raises(TargetInUse):
        await Mover(full, empty, keep=True, page=10).run()
    return 0


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
    await abandon(url, gone, clock=clock)
    assert await old.transfer.marks() == {}


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


KILLED = """
import asyncio, sys
from penstock.operate.move import Mover
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


async def test_a_second_process_on_the_same_move_stops(full: Store, empty: Store) -> None:
    class Overtaken(Shaky):
        async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
            if part is Part.EXECUTIONS:
                await Mover(full, empty).run()
            return await super().adopt(part, rows, bookmark)

    slow = through(empty, Overtaken(empty.transfer, [0], after=False))
    with pytest.raises(MoveOvertaken):
        await Mover(full, slow).run()
    assert (await empty.transfer.marks()).keys() == {"came_by"}
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
