"""The log and its consumers: appended once, applied once, in order, whoever dies in between."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from penstock.app.penstock import Penstock
from penstock.events import feed
from penstock.events.columns import SLOTS
from penstock.events.consumer import CannotRebuild, Consumer, Failing, consumer_of
from penstock.events.event import EventNotFound, InvalidEvent, NewEvent, Session
from penstock.events.feed import Mark
from penstock.events.log import EventFilter
from penstock.events.pool import PoolWorker, catch_up
from penstock.events.rebuild import rebuild, rebuild_session
from penstock.model.errors import InvalidOption
from penstock.testing.clock import FakeClock
from proof.tally import Tally, folded, totals

NOON = 1_767_268_800_000


def an_event(session: str = "s1", amount: int = 1, **fields: Any) -> NewEvent:
    """An event as most tests need it."""
    told: dict[str, Any] = {"event_type": "tool_use", "platform": "shop", **fields}
    return NewEvent(session_id=session, payload={"amount": amount}, **told)


async def append(app: Penstock, *sessions: str) -> list[str]:
    """Append an event of each session; their ids."""
    return [each.event_id for each in await app.events.append_many(list(map(an_event, sessions)))]


async def marks(app: Penstock, consumer: str = "tally") -> dict[str, str]:
    """The marks of sessions."""
    asked = {"consumer": consumer, "mark": None, "limit": 100}
    rows = await app.read(lambda tx: tx.events.queries.rows("marked", asked))
    return {row[3]: row[4] for row in rows}


async def dead(app: Penstock, source: str = "tally") -> list[tuple[str, str]]:
    """The events that were given up, and why."""
    asked = {"source": source, "tenant": None, "before": "~", "limit": 100}
    rows = await app.read(lambda tx: tx.events.queries.rows("dead", asked))
    return [(row[3], row[9]) for row in rows]


async def shed(app: Penstock, priority: int | None, consumer: str = "tally") -> None:
    """Have a consumer put off events of a priority and above."""
    told = (priority, consumer)
    await app.transact(lambda tx: tx.events.queries.run("shed", told))


def a_worker(
    app: Penstock, consumer: Consumer, first: int = 0, last: int = SLOTS - 1
) -> PoolWorker:
    """A worker that wants some slots."""
    worker = PoolWorker(app, consumer)
    worker.wanted = (first, last)
    return worker


async def expected(app: Penstock) -> Any:
    """What a consumer of all events should have derived."""
    return folded(await app.events.find(EventFilter(limit=10_000)))


class TestAppending:
    """What is acknowledged is in the log, once."""

    async def test_gives_sequences_in_the_order_of_appending(self, app: Penstock) -> None:
        first = await app.events.append("tool_use", session_id="a")
        rest = await app.events.append_many([an_event(), an_event()])
        assert [first.created, *(each.created for each in rest)] == [True] * 3
        assert first.sequence < rest[0].sequence < rest[1].sequence

    async def test_what_is_appended_reads_back_as_it_was(self, app: Penstock) -> None:
        payload = {"amount": 1, "text": 'ä\0\n"\\', "deep": [{"x": None}, 1.5, True]}
        told = an_event(event_id="e1", timestamp=NOON, metadata={"cwd": "/a"}, hook_type="Stop")
        await app.events.append(replace(told, payload=payload, tenant_id="acme", person="ada"))
        found = await app.events.get("e1")
        assert (found.payload, found.metadata, found.hook_type) == (payload, {"cwd": "/a"}, "Stop")
        assert (found.timestamp, found.tenant_id, found.person) == (NOON, "acme", "ada")
        assert (found.session, found.priority) == (Session("acme", "shop", "s1"), 2)

    async def test_an_event_that_comes_again_is_there_once(self, app: Penstock) -> None:
        told = an_event(event_id="e1", timestamp=NOON)
        first = await app.events.append(told)
        again = await app.events.append_many([an_event(), told, told])
        assert [each.created for each in again] == [True, False, False]
        assert {each.sequence for each in again[1:]} == {first.sequence}
        assert len(await app.events.find()) == 2

    async def test_hundreds_at_once_are_each_there_once_and_in_their_order(
        self, app: Penstock
    ) -> None:
        told = [an_event(amount=n, event_id=f"e{n}", timestamp=NOON) for n in range(230)]
        await app.events.append_many(told[40:60])
        appended = await app.events.append_many(told)
        assert [each.created for each in appended] == [True] * 40 + [False] * 20 + [True] * 170
        found = await app.events.find(EventFilter(limit=1_000))
        assert [each.event_id for each in found] == [
            f"e{n}" for n in (*range(40, 60), *range(40), *range(60, 230))
        ]
        assert [each.payload["amount"] for each in found[20:22]] == [0, 1]

    async def test_tenants_know_nothing_of_each_other_s_ids(self, app: Penstock) -> None:
        mine = an_event(event_id="e1", timestamp=NOON, tenant_id="acme")
        yours = an_event(amount=2, event_id="e1", timestamp=NOON, tenant_id="beta")
        appended = await app.events.append_many([mine, yours])
        assert [each.created for each in appended] == [True, True]
        assert len(await app.events.find()) == 2

    @pytest.mark.parametrize("other", [{"event_type": "build"}, {"platform": "till"}])
    async def test_an_id_is_that_of_one_type_session_and_platform(
        self, app: Penstock, other: dict[str, Any]
    ) -> None:
        await app.events.append(an_event(event_id="e1", timestamp=NOON))
        with pytest.raises(InvalidEvent, match="another content"):
            await app.events.append(an_event(event_id="e1", timestamp=NOON, **other))

    async def test_an_id_twice_in_one_batch_is_one_event(self, app: Penstock) -> None:
        told = an_event(event_id="e1", timestamp=NOON)
        appended = await app.events.append_many([told, told])
        assert [each.created for each in appended] == [True, False]
        assert [each.event_id for each in await app.events.find()] == ["e1"]

    async def test_another_content_under_the_same_id_is_refused_and_appends_nothing(
        self, app: Penstock
    ) -> None:
        await app.events.append(an_event(event_id="e1", timestamp=NOON))
        with pytest.raises(InvalidEvent, match="another content"):
            await app.events.append_many(
                [an_event(), an_event(amount=2, event_id="e1", timestamp=NOON)]
            )
        assert len(await app.events.find()) == 1

    async def test_one_commit_holds_events_and_jobs(self, app: Penstock) -> None:
        @app.job
        async def noop() -> None: ...

        def work(tx: Any) -> None:
            tx.events.append("tool_use", session_id="a")
            tx.enqueue(noop.new())
            raise LookupError

        with pytest.raises(LookupError):
            await app.transact(work)
        assert await app.events.find() == []
        assert await app.find() == []

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"event_type": ""}, "event_type"),
            ({"event_type": "a b"}, "event_type"),
            ({"session": "s" * 10_240}, "session_id over 512"),
            ({"session": "a\0b"}, "NUL in its session_id"),
            ({"event_id": "x"}, "no timestamp"),
            ({"timestamp": -1}, "1970 to 9999"),
            ({"timestamp": 1 << 60}, "1970 to 9999"),
            ({"timestamp": "yesterday"}, "ISO 8601"),
            ({"timestamp": "2026-01-01T00:00:00"}, "ISO 8601"),
            ({"session": "ada@example.com"}, "secret or an address"),
            ({"metadata": {"x": "\ud800"}}, "surrogate"),
            ({"metadata": {"x": object()}}, "does not fit"),
            ({"metadata": {"x": "x" * (1 << 20)}}, "events.event_limit"),
        ],
    )
    async def test_what_cannot_be_kept_is_refused_in_a_sentence(
        self, app: Penstock, fields: dict[str, Any], problem: str
    ) -> None:
        with pytest.raises(InvalidEvent, match=problem):
            await app.events.append_many([an_event(), an_event(**fields)])
        assert await app.events.find() == []

    async def test_an_event_without_a_session_is_one_of_its_own(self, app: Penstock) -> None:
        appended = await app.events.append("build")
        assert (await app.events.get(appended.event_id)).session_id == appended.event_id

    async def test_times_far_away_are_kept(self, app: Penstock) -> None:
        await app.events.append(an_event(event_id="old", timestamp=0))
        await app.events.append(an_event(event_id="late", timestamp="9999-12-31T23:59:59Z"))
        assert [each.event_id for each in await app.events.find()] == ["old", "late"]

    async def test_producers_side_by_side_lose_nothing(self, app: Penstock) -> None:
        await asyncio.gather(*(append(app, *"abc") for _ in range(20)))
        found = await app.events.find()
        assert len({each.sequence for each in found}) == 60

    async def test_whatever_holds_a_secret_it_does_not_reach_the_log(self, app: Penstock) -> None:
        class Account(Struct):
            password: str

        told = {"a": {"ada@example.com"}, "b": Account("hunter2hunter2"), "c": ("ada@example.com",)}
        await app.events.append("note", payload=told)
        [found] = await app.events.find()
        clean = ["[REDACTED_EMAIL]"]
        assert found.payload == {"a": clean, "b": {"password": "[REDACTED_PASSWORD]"}, "c": clean}

    async def test_secrets_never_reach_the_log(self, app: Penstock) -> None:
        await app.events.append(
            "note", payload={"password": "hunter2hunter2", "a": ["ada@example.com"]}
        )
        [found] = await app.events.find()
        assert found.payload == {"password": "[REDACTED_PASSWORD]", "a": ["[REDACTED_EMAIL]"]}


class TestReading:
    """The log is read by what its events are known by."""

    async def test_finds_by_session_type_platform_tenant_and_time(self, app: Penstock) -> None:
        await app.events.append(an_event("a", event_id="1", timestamp=NOON))
        await app.events.append(an_event("b", event_id="2", timestamp=NOON + 1, tenant_id="acme"))
        await app.events.append(an_event("a", event_type="build", event_id="3", timestamp=NOON + 2))
        await app.events.append(an_event("a", platform="other", event_id="4", timestamp=NOON + 3))

        async def ids(**where: Any) -> str:
            return "".join(each.event_id for each in await app.events.find(EventFilter(**where)))

        assert await ids() == "1234"
        assert await ids(session_id="a") == "134"
        assert await ids(session_id="a", platform="shop") == "13"
        assert await ids(event_type="build") == "3"
        assert await ids(tenant="acme") == "2"
        assert await ids(since=NOON + 1, until=NOON + 3) == "23"
        assert await ids(limit=2) == "12"
        assert await ids(after=(await app.events.get("2")).sequence) == "34"

    async def test_an_unknown_id_is_not_found(self, app: Penstock) -> None:
        with pytest.raises(EventNotFound, match="nothing"):
            await app.events.get("nothing")

    async def test_of_another_tenant_nothing_is_found(self, app: Penstock) -> None:
        appended = await app.events.append("build", tenant_id="acme")
        with pytest.raises(EventNotFound):
            await app.events.get(appended.event_id, tenant="beta")

    async def test_a_page_has_a_size(self, app: Penstock) -> None:
        with pytest.raises(InvalidOption, match="limit"):
            await app.events.find(EventFilter(limit=0))


class TestConsuming:
    """Workers come, go and die; every event has one effect."""

    async def test_every_event_has_one_effect_in_the_order_of_its_session(
        self, app: Penstock, tally: Tally
    ) -> None:
        await append(app, *"abcab" * 30)
        await catch_up(app)
        await append(app, *"cab")
        await catch_up(app)
        assert await totals(app) == await expected(app)

    async def test_a_consumer_gets_its_types_alone(self, app: Penstock) -> None:
        tally = Tally("builds")
        app.consumer.add(tally.consumer(types=["build"]))
        await append(app, *"aaa")
        await app.events.append(an_event("a", 5, event_type="build"))
        await catch_up(app, "builds")
        [(count, amount, _)] = (await totals(app, "builds")).values()
        assert (count, amount) == (1, 5)

    async def test_batches_are_as_large_as_the_consumer_says(self, app: Penstock) -> None:
        tally = Tally("small")
        app.consumer.add(tally.consumer(batch=3))
        await append(app, *"abcdefgh")
        await catch_up(app, "small")
        assert tally.prepared == [3, 3, 2]

    async def test_a_paused_consumer_does_nothing(self, app: Penstock, tally: Tally) -> None:
        await feed.declare(app, app.consumer.get("tally"))
        await app.transact(lambda tx: tx.events.queries.run("pause_consumer", (1, "tally")))
        await append(app, *"ab")
        await catch_up(app)
        assert await totals(app) == {}

    async def test_slots_are_held_by_one_worker(self, app: Penstock, tally: Tally) -> None:
        consumer = app.consumer.get("tally")
        await feed.declare(app, consumer)
        one, other = a_worker(app, consumer), a_worker(app, consumer)
        await append(app, *"abc")
        assert await one.turn() is True
        assert await other.turn() is False
        assert other.lanes == []

    async def test_slots_of_a_dead_worker_are_taken_over(
        self, app: Penstock, tally: Tally, clock: FakeClock
    ) -> None:
        consumer = app.consumer.get("tally")
        await feed.declare(app, consumer)
        lost, next_one = a_worker(app, consumer), a_worker(app, consumer)
        await append(app, *"abc")
        await lost.turn()
        await append(app, *"abc")
        clock.advance(feed.LEASE_MS / 1000 + 1)
        while await next_one.turn():
            pass
        assert await totals(app) == await expected(app)

    async def test_who_lost_its_slots_changes_nothing(
        self, app: Penstock, tally: Tally, clock: FakeClock
    ) -> None:
        consumer = app.consumer.get("tally")
        await feed.declare(app, consumer)
        frozen, next_one = a_worker(app, consumer), a_worker(app, consumer)
        await frozen.turn()
        clock.advance(feed.LEASE_MS / 1000 + 1)
        await append(app, *"abc")
        while await next_one.turn():
            pass
        await append(app, *"abc")
        assert await frozen.turn() is True  # it finds out that its slots are gone
        assert frozen.lanes == []
        while await next_one.turn():
            pass
        assert await totals(app) == await expected(app)

    async def test_a_clock_that_is_set_back_keeps_nobody_waiting(
        self, app: Penstock, tally: Tally, clock: FakeClock
    ) -> None:
        consumer = app.consumer.get("tally")
        await feed.declare(app, consumer)
        lost, next_one = a_worker(app, consumer), a_worker(app, consumer)
        clock.advance(3_600)
        await lost.turn()
        clock.set_wall(clock.now() - 3_600_000)
        await append(app, *"abc")
        while await next_one.turn():
            pass
        assert await totals(app) == await expected(app)

    async def test_what_is_rare_is_found_step_by_step(
        self, app: Penstock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(feed, "AHEAD", 10)
        tally = Tally("rare")
        app.consumer.add(tally.consumer(types=["build"]))
        await append(app, *"abc" * 10)
        await app.events.append(an_event("a", event_type="build"))
        await catch_up(app, "rare")
        assert tally.prepared == [1]

    async def test_slots_that_were_taken_over_are_lost_though_nothing_moved(
        self, app: Penstock, tally: Tally, clock: FakeClock
    ) -> None:
        consumer = app.consumer.get("tally")
        await feed.declare(app, consumer)
        frozen, next_one = a_worker(app, consumer), a_worker(app, consumer)
        await frozen.turn()
        clock.advance(feed.LEASE_MS / 1000 + 1)
        await next_one.turn()
        await append(app, *"abc")
        await frozen.turn()
        assert frozen.lanes == []
        assert await totals(app) == {}

    async def test_other_shares_move_slots_and_no_cursor(self, app: Penstock, tally: Tally) -> None:
        consumer = app.consumer.get("tally")
        await feed.declare(app, consumer)
        alone = a_worker(app, consumer)
        await append(app, *"abcdefgh")
        await alone.turn()
        half, other = a_worker(app, consumer, 0, 127), a_worker(app, consumer, 128, 255)
        alone.wanted = None
        await alone.turn()
        await append(app, *"abcdefgh")
        await half.turn()
        await append(app, *"abcdefgh")
        while await half.turn() or await other.turn():
            pass
        assert await totals(app) == await expected(app)
        await half.leave()
        await other.leave()
        alone.wanted = (0, 255)
        alone.claim_at = 0.0
        await append(app, *"ab")
        while await alone.turn():
            pass
        assert [(lane.first, lane.last) for lane in alone.lanes] == [(0, 255)]
        assert await totals(app) == await expected(app)

    async def test_a_job_is_enqueued_with_the_cursor_and_once_for_an_event(
        self, app: Penstock
    ) -> None:
        @app.job
        async def noop() -> None: ...

        class Sends:
            fails = True

            def apply(self, tx: Any, events: Any) -> None:
                for event in events:
                    tx.enqueue(noop.new(), event=event)
                    tx.enqueue(noop.new(), event=event)
                if Sends.fails:
                    Sends.fails = False
                    raise ValueError("once")

            def reset(self, tx: Any, session: Session) -> None: ...

        app.consumer.add(consumer_of(Sends, name="sends"))
        await append(app, "a")
        await catch_up(app, "sends")
        assert len(await app.find()) == 2
        await rebuild(app, app.consumer.get("sends"))
        await rebuild(app, app.consumer.get("sends"), enqueue=True)
        assert len(await app.find()) == 2


class TestFailing:
    """What cannot be applied is set aside and never lost."""

    async def test_an_event_that_always_fails_is_parked_and_blocks_nobody(
        self, app: Penstock, tally: Tally
    ) -> None:
        ids = await append(app, *"abcabc")
        tally.poison = {ids[1]}
        await catch_up(app)
        [(parked, reason)] = await dead(app)
        assert parked == ids[1]
        assert reason == f"ValueError: cannot apply {ids[1]}"
        assert await marks(app) == {"b": Mark.INCOMPLETE}
        others = [each for each in await app.events.find() if each.event_id != ids[1]]
        assert await totals(app) == folded(others)

    async def test_an_event_that_fails_once_is_tried_again(
        self, app: Penstock, tally: Tally
    ) -> None:
        ids = await append(app, *"abc")
        tally.poison = {ids[1]}
        plain, tries = tally.apply, []

        def apply(tx: Any, events: Any) -> None:
            tries.append(len(events))
            if len(tries) > 3:
                tally.poison = set()
            plain(tx, events)

        app.consumer.add(replace(tally.consumer(), name="again", apply=apply, tries=5))
        await catch_up(app, "again")
        assert await dead(app, "again") == []
        assert await totals(app) == await expected(app)

    async def test_what_was_given_up_stays_so_when_later_events_are_made_up_for(
        self, app: Penstock
    ) -> None:
        applied: list[str] = []
        poison: set[str] = set()

        def apply(_tx: Any, events: Any) -> None:
            if poison & {event.event_id for event in events}:
                raise ValueError("poison")
            applied.extend(event.event_id for event in events)

        consumer = consumer_of(apply, name="plain", tries=1)
        app.consumer.add(consumer)
        [lost] = await append(app, "a")
        poison.add(lost)
        await catch_up(app, "plain")
        await shed(app, 5, "plain")
        put_off = await app.events.append(an_event("a", event_type="debug"))
        await catch_up(app, "plain")
        await rebuild_session(app, consumer, Session("", "shop", "a"))
        assert applied == [put_off.event_id]
        assert [each for each, _ in await dead(app, "plain")] == [lost]
        assert await marks(app, "plain") == {"a": Mark.INCOMPLETE}

    async def test_a_session_can_be_told_to_wait(self, app: Penstock) -> None:
        tally = Tally("waits")
        app.consumer.add(tally.consumer(failing="wait"))
        ids = await append(app, *"abab")
        tally.poison = {ids[0]}
        await catch_up(app, "waits")
        await append(app, *"ab")
        await catch_up(app, "waits")
        assert await marks(app, "waits") == {"a": Mark.WAITING}
        assert set(await totals(app, "waits")) == {"/shop/b"}
        tally.poison = set()
        await rebuild_session(app, app.consumer.get("waits"), Session("", "shop", "a"))
        assert await totals(app, "waits") == await expected(app)
        assert await marks(app, "waits") == {}
        assert await dead(app, "waits") == []

    async def test_what_is_put_off_marks_its_session_as_behind(
        self, app: Penstock, tally: Tally
    ) -> None:
        await feed.declare(app, app.consumer.get("tally"))
        await shed(app, 5)
        await append(app, *"ab")
        await app.events.append(an_event("a", event_type="debug"))
        await append(app, *"ab")
        await catch_up(app)
        assert await marks(app) == {"a": Mark.BEHIND}
        assert (await totals(app))["/shop/a"][0] == 1
        assert (await totals(app))["/shop/b"][0] == 2
        await shed(app, None)
        await append(app, "a")
        await catch_up(app)
        assert (await totals(app))["/shop/a"][0] == 1, "it stays behind until it is made anew"
        await rebuild_session(app, app.consumer.get("tally"), Session("", "shop", "a"))
        assert await totals(app) == await expected(app)
        assert await marks(app) == {}


class TestRebuilding:
    """What was derived can be thrown away."""

    async def test_a_rebuild_equals_what_was_derived_event_by_event(
        self, app: Penstock, tally: Tally
    ) -> None:
        await append(app, *"abcab" * 10)
        await catch_up(app)
        before = await totals(app)
        assert await rebuild(app, app.consumer.get("tally")) == 3
        assert await totals(app) == before

    async def test_what_the_consumer_has_not_come_to_is_left_to_it(
        self, app: Penstock, tally: Tally
    ) -> None:
        await append(app, *"ab")
        await catch_up(app)
        before = await totals(app)
        await append(app, *"ab")
        await rebuild(app, app.consumer.get("tally"))
        assert await totals(app) == before
        await catch_up(app)
        assert await totals(app) == await expected(app)

    async def test_who_has_fetched_before_a_rebuild_fetches_again(
        self, app: Penstock, tally: Tally
    ) -> None:
        consumer = replace(app.consumer.get("tally"), failing=Failing.WAIT)
        ids = await append(app, *"ab")
        tally.poison = {ids[0]}
        worker = a_worker(app, consumer)
        await feed.declare(app, consumer)
        while await worker.turn():
            pass
        assert await marks(app) == {"a": Mark.WAITING}
        tally.poison = set()

        async def meanwhile(events: Any) -> Any:
            await rebuild_session(app, consumer, Session("", "shop", "a"))
            return events

        await append(app, *"ab")
        worker.consumer = replace(consumer, prepare=meanwhile)
        await worker.turn()
        worker.consumer = consumer
        while await worker.turn():
            pass
        assert await totals(app) == await expected(app)

    async def test_what_the_consumer_comes_past_meanwhile_is_rebuilt_too(
        self, app: Penstock, tally: Tally
    ) -> None:
        consumer = app.consumer.get("tally")
        await append(app, *"ab")
        await catch_up(app)
        await append(app, *"ab")
        told: list[int] = []

        async def meanwhile(events: Any) -> Any:
            told.append(len(events))
            await catch_up(app)
            return events

        await rebuild_session(app, replace(consumer, prepare=meanwhile), Session("", "shop", "a"))
        assert told == [1, 2]
        assert await totals(app) == await expected(app)

    async def test_a_consumer_without_a_reset_cannot_be_rebuilt(self, app: Penstock) -> None:
        app.consumer.add(consumer_of(lambda _tx, _events: None, name="plain"))
        with pytest.raises(CannotRebuild, match="reset"):
            await rebuild(app, app.consumer.get("plain"))

    async def test_many_sessions_are_found_page_by_page(
        self, app: Penstock, tally: Tally, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("penstock.events.rebuild.SESSIONS", 20)
        await append(app, *(f"s{n}" for n in range(45)))
        await catch_up(app)
        before = await totals(app)
        assert await rebuild(app, app.consumer.get("tally")) == 45
        assert await totals(app) == before


Reopen = Callable[[], Awaitable[Penstock]]
