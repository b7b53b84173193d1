from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.model.transfer import (
    MoveIncomplete,
    SameStore,
    SourceChanged,
    StoreMoved,
    TargetInUse,
    WorkersAlive,
)
from penstock.operate.move import Moved, Mover, move
from penstock.store.contract import Bookmark, Part, Row, Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import enqueue, enqueue_after
from tests.app.scenarios import beat
from tests.operate.moving import Opened, Shaky, through


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
        with pytest.raises(TargetInUse, match=r"holds 1 job;"):
            await Mover(full, empty, force=True, replace=replace).run()
    assert await full.transfer.marks() == {}


async def test_what_a_target_holds_is_counted_in_words(full: Store, empty: Store) -> None:
    await enqueue_after(empty, await enqueue(empty))
    with pytest.raises(TargetInUse, match=r"holds 2 jobs and 1 dependency;"):
        await Mover(full, empty).run()


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
    moved = await Mover(full, empty, force=True, keep=True).run()
    assert await holds(empty, moved)


async def test_workers_that_fell_silent_do_not(full: Store, empty: Store, clock: FakeClock) -> None:
    beat(full)
    clock.advance(seconds=31)
    assert await holds(empty, await Mover(full, empty).run())


async def holds(store: Store, moved: Moved) -> bool:
    """Return True if a move took jobs and the store holds all of them."""
    jobs = moved.tally.parts[Part.JOBS]
    return jobs > 0 and (await store.transfer.tally()).parts[Part.JOBS] == jobs


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


async def test_a_url_of_one_tenant_is_no_installation(
    opened: Opened, postgres_store_url: str, empty: Store
) -> None:
    mark = "&" if "?" in postgres_store_url else "?"
    source = await opened(f"{postgres_store_url}{mark}tenant=acme")
    with pytest.raises(Exception, match=r"without \?tenant="):
        await source.transfer.tally()
