"""Records: small documents under a kind and a name, changed by compare and set."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.store.contract import Retention, Store
from penstock.testing.clock import FakeClock

Reopen = Callable[[], Awaitable[Store]]


class TestRecords:
    """Reading and writing one at a time."""

    async def test_what_was_put_is_there(self, store: Store, clock: FakeClock) -> None:
        document = '{"scopes":["read"],"note":"snow ☃ \\u0041"}'
        made = await store.records.put("token", "a", document)
        assert made is not None
        assert (made.kind, made.name, made.document) == ("token", "a", document)
        assert (made.revision, made.updated_at, made.expires_at) == (1, clock.now(), None)
        assert await store.records.get("token", "a") == made

    async def test_what_was_never_put_is_not_there(self, store: Store) -> None:
        await store.records.put("token", "a", "1")
        assert await store.records.get("token", "b") is None
        assert await store.records.get("user", "a") is None

    async def test_a_change_replaces_it_and_raises_its_revision(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.records.put("user", "ada", "1", expires_in_ms=60_000)
        clock.advance(seconds=1)
        changed = await store.records.put("user", "ada", "2")
        assert changed is not None
        assert (changed.document, changed.revision) == ("2", 2)
        assert (changed.updated_at, changed.expires_at) == (clock.now(), None)
        assert await store.records.get("user", "ada") == changed

    async def test_a_name_is_any_text(self, store: Store) -> None:
        names = ["a b", "ünïcode/☃", "a:b|c", "%_'\"\\", "10", "9", "Z"]
        for name in names:
            await store.records.put("kind of it", name, "1")
        found = [record.name for record in await store.records.list("kind of it")]
        assert found == sorted(names, key=str.encode)

    async def test_what_is_removed_is_gone(self, store: Store) -> None:
        await store.records.put("token", "a", "1")
        assert await store.records.remove("token", "a")
        assert await store.records.get("token", "a") is None
        assert not await store.records.remove("token", "a")


class TestComparing:
    """A change that names a revision is made only where it still holds."""

    async def test_the_revision_that_is_there_is_changed(self, store: Store) -> None:
        await store.records.put("user", "ada", "1")
        changed = await store.records.put("user", "ada", "2", revision=1)
        assert changed is not None
        assert changed.revision == 2

    async def test_another_revision_is_left_alone(self, store: Store) -> None:
        await store.records.put("user", "ada", "1")
        kept = await store.records.put("user", "ada", "2")
        for revision in (0, 1, 3):
            assert await store.records.put("user", "ada", "3", revision=revision) is None
        assert await store.records.get("user", "ada") == kept

    async def test_zero_means_that_there_is_none(self, store: Store) -> None:
        assert await store.records.put("user", "ada", "1", revision=0) is not None
        assert await store.records.put("user", "ada", "2", revision=0) is None

    async def test_a_revision_of_nothing_makes_nothing(self, store: Store) -> None:
        assert await store.records.put("user", "ada", "1", revision=1) is None
        assert await store.records.get("user", "ada") is None

    async def test_of_many_at_once_one_is_made(self, store: Store) -> None:
        answers = await asyncio.gather(
            *(store.records.put("user", "ada", str(n), revision=0) for n in range(8))
        )
        [made] = [answer for answer in answers if answer is not None]
        assert await store.records.get("user", "ada") == made


class TestExpiringRecords:
    """A record is there for as long as was said, by the store's clock."""

    async def test_it_is_gone_when_its_time_is_over(self, store: Store, clock: FakeClock) -> None:
        made = await store.records.put("session", "s", "1", expires_in_ms=60_000)
        assert made is not None
        assert made.expires_at == clock.now() + 60_000
        clock.advance(seconds=59)
        assert await store.records.get("session", "s") == made
        clock.advance(seconds=1)
        assert await store.records.get("session", "s") is None
        assert await store.records.list("session") == []
        assert not await store.records.remove("session", "s")

    async def test_a_new_one_takes_its_place(self, store: Store, clock: FakeClock) -> None:
        await store.records.put("session", "s", "1", expires_in_ms=1_000)
        await store.records.put("session", "s", "2", expires_in_ms=1_000)
        clock.advance(seconds=1)
        assert await store.records.put("session", "s", "3", revision=2) is None
        made = await store.records.put("session", "s", "4", revision=0)
        assert made is not None
        assert (made.revision, made.expires_at) == (1, None)

    async def test_pruning_drops_them_and_no_others(self, store: Store, clock: FakeClock) -> None:
        await store.records.put("session", "over", "1", expires_in_ms=1_000)
        await store.records.put("session", "lasts", "1", expires_in_ms=10_000)
        await store.records.put("session", "stays", "1")
        clock.advance(seconds=5)
        await store.upkeep.prune(Retention(keep_ms={}))
        tally = await store.transfer.tally()
        assert {part: n for part, n in tally.parts.items() if n} == {"records": 2}
        found = [record.name for record in await store.records.list("session")]
        assert found == ["lasts", "stays"]


class TestListingRecords:
    """Pages of a kind, by name."""

    async def test_pages_follow_each_other_without_gaps(self, store: Store) -> None:
        for number in range(7):
            await store.records.put("alert", f"rule-{number}", str(number))
        await store.records.put("alerted", "rule-0", "1")
        await store.records.put("aler", "rule-0", "1")
        seen: list[str] = []
        while page := await store.records.list("alert", after=seen[-1] if seen else "", limit=3):
            assert len(page) <= 3
            assert all(record.kind == "alert" for record in page)
            seen += [record.name for record in page]
        assert seen == [f"rule-{number}" for number in range(7)]

    async def test_expired_ones_take_no_place_on_a_page(
        self, store: Store, clock: FakeClock
    ) -> None:
        for name in "abcd":
            await store.records.put("session", name, "1", expires_in_ms=1_000)
        for name in "efg":
            await store.records.put("session", name, "1")
        clock.advance(seconds=2)
        page = await store.records.list("session", limit=2)
        assert [record.name for record in page] == ["e", "f"]

    async def test_records_outlive_a_restart(self, store: Store, reopen: Reopen) -> None:
        made = await store.records.put("token", "a", '{"x":1}')
        again = await reopen()
        assert await again.records.get("token", "a") == made
