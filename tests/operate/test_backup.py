"""A copy of a store of any kind is one file, and fills a store of any kind, which then works."""

# ruff: noqa: ASYNC240 - looking at the files is what these tests do.

from contextlib import suppress
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.model.errors import PenstockError
from penstock.model.store_errors import StoreUnavailable, TooManyToCopy
from penstock.model.transfer import CopyIncomplete, StoreMoved, StoreMoving, TargetInUse
from penstock.operate.backup import backup, restore
from penstock.store.contract import Part, Row, Store, Tally
from penstock.store.open import open_store
from penstock.store.redis.store import COPIES
from penstock.testing import FakeClock, drain
from proof.conformance.build import enqueue
from proof.conformance.furnish import everything, furnish
from tests.app.kitchen import Kitchen
from tests.operate.moving import Lost, Shaky, through
from tests.support.places import Place
from tests.support.vanishing import KINDS, Vanishing, find_vanishing

pytestmark = pytest.mark.thorough("postgres", "valkey")


@pytest.fixture(params=KINDS)
def elsewhere(request: pytest.FixtureRequest) -> Vanishing:
    """A place of each kind at which there is nothing."""
    return find_vanishing(request.param, "elsewhere", request)


async def opened(url: str, clock: FakeClock) -> Store:
    store = open_store(url, clock)
    await store.open(moving=True)
    return store


async def content(url: str, clock: FakeClock) -> dict[Part, list[Row]]:
    store = await opened(url, clock)
    try:
        return await everything(store)
    finally:
        await store.close()


@pytest.mark.quick("postgres", "valkey")
async def test_a_copy_holds_all_that_the_store_held(
    place: Place, tmp_path: Path, clock: FakeClock
) -> None:
    store = await opened(place.url, clock)
    await furnish(store, clock)
    await store.metrics.roll_up()
    expected = await everything(store)
    copy = tmp_path / "copy.db"
    assert await backup(store, copy, clock=clock) == len(expected[Part.JOBS])
    await enqueue(store)
    await store.close()
    found = await content(f"sqlite:///{copy}", clock)
    assert found == expected


async def test_a_restored_store_of_any_kind_goes_on_with_its_jobs(
    elsewhere: Vanishing, tmp_path: Path, clock: FakeClock
) -> None:
    old = Penstock(f"sqlite:///{tmp_path}/work.db", clock=clock)
    kitchen = Kitchen(old)
    copy = tmp_path / "copy.db"
    async with old:
        handle = await kitchen.peel.enqueue(1)
        await backup(old.store, copy)
    before = copy.read_bytes()
    assert await restore(copy, elsewhere.url, clock=clock) == 1
    assert copy.read_bytes() == before
    new = Penstock(elsewhere.url, clock=clock)
    kitchen = Kitchen(new)
    async with new:
        await drain(new)
        assert kitchen.did == [("peel", 1)]
        assert (await new.get(handle.id)).result == "1"


async def test_a_copy_of_each_kind_is_put_into_another_of_that_kind(
    elsewhere: Vanishing, tmp_path: Path, clock: FakeClock
) -> None:
    store = await opened(elsewhere.url, clock)
    await furnish(store, clock)
    await store.metrics.roll_up()
    expected = await everything(store)
    await backup(store, tmp_path / "copy.db", clock=clock)
    await store.close()
    elsewhere.lose()
    await restore(tmp_path / "copy.db", elsewhere.url, clock=clock)
    assert await content(elsewhere.url, clock) == expected


@pytest.mark.parametrize("elsewhere", ["postgres", "valkey"], indirect=True)
async def test_a_restore_that_is_interrupted_goes_on_when_it_is_run_again(
    elsewhere: Vanishing, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, copy = await opened(f"sqlite:///{tmp_path}/work.db", clock), tmp_path / "copy.db"
    await furnish(old, clock)
    await old.metrics.roll_up()
    expected = await everything(old)
    jobs = await backup(old, copy)
    await old.close()
    before = copy.read_bytes()

    def shaky(url: str, clock: FakeClock) -> Store:
        target = open_store(url, clock)
        # Each run dies at a later call than the one before, by turns before and after it is done;
        # at the last call before it, for after it there is nothing left to go on with.
        return through(target, Shaky(target.transfer, [runs], after=runs % 2 == 1))

    monkeypatch.setattr("penstock.operate.backup.open_store", shaky)
    runs, restored = 0, -1
    while restored < 0 and runs < 100:
        runs += 1
        with suppress(Lost):
            restored = await restore(copy, elsewhere.url, clock=clock)
        assert copy.read_bytes() == before
    assert restored == jobs
    assert runs > 5
    assert await content(elsewhere.url, clock) == expected
    store = open_store(elsewhere.url, clock)
    await store.open()
    await store.close()


async def test_a_store_that_holds_jobs_is_not_filled_from_a_copy(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    store = await opened(valkey_url, clock)
    await enqueue(store)
    await backup(store, tmp_path / "copy.db")
    with pytest.raises(TargetInUse, match="holds 1 job"):
        await restore(tmp_path / "copy.db", valkey_url, clock=clock)
    assert (await store.transfer.tally()).parts[Part.JOBS] == 1
    await store.close()


async def test_a_store_that_was_moved_away_is_copied_and_its_copy_used(
    postgres_store_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    store = await opened(postgres_store_url, clock)
    await enqueue(store)
    await store.transfer.mark({"move": "one", "moved_to": "redis://else"})
    await backup(store, tmp_path / "copy.db")
    await store.close()
    with pytest.raises(StoreMoved):
        await open_store(f"sqlite:///{tmp_path}/copy.db").open()
    await restore(tmp_path / "copy.db", f"sqlite:///{tmp_path}/new.db")
    new = open_store(f"sqlite:///{tmp_path}/new.db")
    await new.open()
    await new.close()


async def test_a_store_that_is_being_filled_is_not_copied(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    for url in (valkey_url, f"sqlite:///{tmp_path}/work.db"):
        store = await opened(url, clock)
        await store.transfer.mark({"move": "one", "moving_from": "redis://else"})
        with pytest.raises(StoreMoving):
            await backup(store, tmp_path / "copy.db")
        await store.close()
    assert not (tmp_path / "copy.db").exists()


async def test_a_copy_that_does_not_hold_everything_is_not_made(
    valkey_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(valkey_url, clock)
    await enqueue(store)

    async def other(self: object) -> Tally:
        return Tally(dict.fromkeys(Part, 2), {}, 0, 0)

    monkeypatch.setattr("penstock.store.redis.transfer.RedisTransfer.tally", other)
    with pytest.raises(CopyIncomplete, match="jobs: 2 -> 1"):
        await backup(store, tmp_path / "copy.db")
    await store.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_exists_is_never_overwritten(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    store = await opened(valkey_url, clock)
    copy = tmp_path / "copy.db"
    copy.write_text("precious")
    with pytest.raises(StoreUnavailable, match="exists already"):
        await backup(store, copy)
    await store.close()
    assert copy.read_text() == "precious"


async def test_one_tenant_is_no_installation_to_copy(
    postgres_store_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    store = await opened(f"{postgres_store_url}?tenant=acme", clock)
    with pytest.raises(PenstockError):
        await backup(store, tmp_path / "copy.db")
    await store.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_backup_of_redis_leaves_no_key_behind(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> None:
    place = find_vanishing("valkey", "", request)
    store = await opened(place.url, clock)
    await furnish(store, clock)
    await store.metrics.roll_up()
    before = place.traces()
    async with store.snapshot():
        copies = [key for key in place.traces() if COPIES in key]
        assert len(copies) == len(before)
    await backup(store, tmp_path / "copy.db")
    assert place.traces() == before
    await store.close()


async def test_a_redis_store_too_large_to_copy_in_one_step_names_the_tool_for_it(
    valkey_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.redis.store.MOST_COPIED", 1)
    store = await opened(valkey_url, clock)
    for _ in range(2):
        await enqueue(store)
    with pytest.raises(TooManyToCopy, match="BGSAVE"):
        await backup(store, tmp_path / "copy.db")
    await store.close()
    assert list(tmp_path.iterdir()) == []
