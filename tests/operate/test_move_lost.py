"""The only copy of the data survives every order of moves, losses and commands."""

import asyncio
from pathlib import Path

import pytest

from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.transfer import (
    NoSuchMove,
    NotMovedAway,
    StillThere,
    StoreMoved,
    StoreMoving,
    TargetInUse,
)
from penstock.operate.journal import Journal
from penstock.operate.move import Mover, Reopening, abandon, move, reopen
from penstock.store.contract import JobFilter, Store
from penstock.store.open import lasting_name, open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import claim_all, enqueue
from tests.operate.moving import Lost, Shaky, through
from tests.support.vanishing import KINDS, Vanishing, find_vanishing

pytestmark = pytest.mark.thorough("postgres", "valkey")


@pytest.fixture(params=KINDS)
def first(request: pytest.FixtureRequest) -> Vanishing:
    """A place of each kind."""
    return find_vanishing(request.param, "first", request)


@pytest.fixture
def second(request: pytest.FixtureRequest) -> Vanishing:
    """A place for a file."""
    return find_vanishing("sqlite", "second", request)


async def made(url: str, clock: FakeClock, jobs: int = 3) -> list[str]:
    """Make a store with some jobs; their ids."""
    store = open_store(url, clock)
    await store.open()
    ids = [await enqueue(store) for _ in range(jobs)]
    await store.close()
    return ids


async def ids_in(url: str, clock: FakeClock) -> list[str]:
    """Look into a store, whatever a move has written there."""
    store: Store = open_store(url, clock)
    await store.open(moving=True)
    try:
        return [job.id for job in reversed(await store.reader.find(JobFilter()))]
    finally:
        await store.close()


@pytest.mark.quick("postgres", "valkey")
async def test_a_move_that_is_refused_makes_nothing_where_it_would_have_led(
    first: Vanishing, second: Vanishing, clock: FakeClock
) -> None:
    await made(second.url, clock)
    await move(second.url, first.url, clock=clock)
    first.lose()
    with pytest.raises(StoreMoved):
        await move(second.url, first.url, clock=clock)
    assert first.traces() == []


async def test_a_lost_store_made_anew_does_not_replace_what_was_moved_into_it(
    first: Vanishing, second: Vanishing, clock: FakeClock
) -> None:
    ids = await made(first.url, clock)
    await move(first.url, second.url, clock=clock)
    second.lose()
    await made(second.url, clock, jobs=0)
    with pytest.raises(TargetInUse):
        await move(second.url, first.url, replace=True, clock=clock)
    await made(second.url, clock, jobs=1)
    with pytest.raises(TargetInUse, match="penstock reopen"):
        await move(second.url, first.url, replace=True, clock=clock)
    assert await ids_in(first.url, clock) == ids


async def test_giving_up_a_move_makes_no_target(
    first: Vanishing, second: Vanishing, clock: FakeClock
) -> None:
    await made(second.url, clock)
    with pytest.raises(NoSuchMove):
        await abandon(second.url, first.url, clock=clock)
    assert first.traces() == []
    store = open_store(second.url, clock)
    await store.open()
    await store.transfer.mark({"move": "one", "moving_to": lasting_name(first.url)})
    await store.close()
    await abandon(second.url, first.url, clock=clock)
    assert first.traces() == []


async def test_a_move_of_part_of_an_installation_makes_nothing(
    postgres_store_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    with pytest.raises(PenstockError):
        await move(f"{postgres_store_url}?tenant=acme", f"sqlite:///{tmp_path}/new.db", clock=clock)
    assert not await asyncio.to_thread((tmp_path / "new.db").exists)


async def test_a_store_whose_successor_is_lost_can_be_opened_again(
    first: Vanishing, second: Vanishing, clock: FakeClock
) -> None:
    ids = await made(first.url, clock)
    await move(first.url, second.url, clock=clock)
    second.lose()
    found = await reopen(first.url, clock=clock)
    assert found.finding == "is not there any more"
    assert found.tally.statuses == {"queued": 3}
    assert second.traces() == []
    store = open_store(first.url, clock)
    await store.open()
    assert [lease.id for lease in await claim_all(store)] == ids
    assert (await Journal(store).verify()).entries == 1
    last = await store.audit.last()
    assert last is not None
    assert (last.actor, last.action, last.subject) == ("program", "store.reopen", "store")
    await store.close()
    with pytest.raises(NotMovedAway):
        await reopen(first.url, clock=clock)


async def test_a_store_is_not_opened_again_while_its_successor_holds_the_jobs(
    first: Vanishing, second: Vanishing, clock: FakeClock
) -> None:
    await made(second.url, clock)
    await move(second.url, first.url, clock=clock)
    with pytest.raises(StillThere, match=r"holds 3 jobs"):
        await reopen(second.url, moved_to=first.url, clock=clock)
    with pytest.raises(StoreMoved):
        await open_store(second.url, clock).open()
    found = await reopen(second.url, moved_to=first.url, force=True, clock=clock)
    assert found.finding == "still holds them"


async def test_a_successor_that_was_made_anew_is_told_from_the_one_that_held_the_jobs(
    first: Vanishing, second: Vanishing, clock: FakeClock
) -> None:
    await made(second.url, clock)
    await move(second.url, first.url, clock=clock)
    first.lose()
    await made(first.url, clock)
    found = await reopen(second.url, moved_to=first.url, clock=clock)
    assert "made anew" in found.finding


async def test_a_store_stays_closed_when_the_person_who_is_asked_says_no(
    tmp_path: Path, clock: FakeClock
) -> None:
    url, gone = f"sqlite:///{tmp_path}/old.db", "postgresql://ada:***@db/work"
    await made(url, clock)
    store = open_store(url, clock)
    await store.open()
    await store.transfer.mark({"move": "one", "moved_to": gone})
    await store.close()

    def refuse(found: Reopening) -> None:
        assert "password is not known" in found.finding
        raise Lost

    with pytest.raises(Lost):
        await reopen(url, confirm=refuse, clock=clock)
    with pytest.raises(StoreMoved):
        await open_store(url, clock).open()
    with pytest.raises(InvalidOption, match=r"postgresql://ada:\*\*\*@db/work"):
        await reopen(url, moved_to="postgresql://ada:pw@else/work", clock=clock)


async def test_a_successor_that_does_not_answer_is_said_to_be_so(
    tmp_path: Path, clock: FakeClock
) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    await made(url, clock)
    store = open_store(url, clock)
    await store.open()
    await store.transfer.mark({"move": "one", "moved_to": "redis://localhost:1/0"})
    await store.close()
    assert "cannot be looked at" in (await reopen(url, clock=clock)).finding


async def test_a_store_that_a_move_half_emptied_is_not_opened_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    old, new = (f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new"))
    await made(old, clock)
    await move(old, new, clock=clock)

    class Killed(Shaky):
        async def clear(self) -> None:
            raise Lost

    stores = [open_store(url, clock) for url in (new, old)]
    for store in stores:
        await store.open(moving=True)
    halting = through(stores[1], Killed(stores[1].transfer, [0], after=False))
    with pytest.raises(Lost):
        await Mover(stores[0], halting, replace=True).run()
    for store in stores:
        await store.close()
    with pytest.raises(StoreMoving):
        await reopen(old, clock=clock)
    with pytest.raises(StoreMoving):
        await open_store(old, clock).open()
    moved = await move(new, old, replace=True, clock=clock)
    assert moved.tally.statuses == {"queued": 3}


async def test_a_half_emptied_store_is_emptied_when_its_move_is_given_up(
    tmp_path: Path, clock: FakeClock
) -> None:
    old, new = (f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new"))
    await made(old, clock)
    await move(old, new, clock=clock)
    for url, marks in (
        (old, {"emptying": "two", "moving_from": new}),
        (new, {"move": "two", "moving_to": old}),
    ):
        store = open_store(url, clock)
        await store.open(moving=True)
        await store.transfer.mark(marks)
        await store.close()
    await abandon(new, old, clock=clock)
    assert await ids_in(old, clock) == []
    assert len(await ids_in(new, clock)) == 3
