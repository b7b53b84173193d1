"""The pipeline as people see it: what comes in, how far consumers are, pausing and rebuilding."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from penstock import Penstock
from penstock.events import feed
from penstock.events.consumer import CannotRebuild, UnknownConsumer
from penstock.events.erase import ConsumersMissing
from penstock.events.event import Event, Session
from penstock.events.pipeline import Pipeline, Rates
from penstock.events.pool import catch_up
from penstock.events.rebuild import SessionsFailed
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Operator
from penstock.testing import FakeClock
from tests.events.counting import Counting, Resetting, counting, numbered
from tests.support.places import Place

pytestmark = pytest.mark.parametrize("kind_of_store", ["sqlite", "postgres"])


@pytest.fixture
async def app(place: Place, clock: FakeClock) -> AsyncIterator[Penstock]:
    async with Penstock(**place.settings, clock=clock) as made:
        yield made


async def test_it_says_what_came_in_and_how_far_behind_each_consumer_is(
    app: Penstock, clock: FakeClock
) -> None:
    counting(app, Counting(), "one", role="vital")
    counting(app, Counting(), "two", types=["other"])
    await app.events.append_many(numbered(1, 2, 3))
    await catch_up(app, "two")
    await feed.declare(app, app.consumer.get("one"))
    clock.advance(10)
    state = await app.events.pipeline.state()
    assert (state.latest, state.per_second) == (3, 0.05)
    one, two = state.consumers
    assert (one.name, one.role, one.state, one.depth) == ("one", "vital", "silent", 3)
    assert one.lag_ms == 10_000
    assert (two.state, two.depth, two.lag_ms) == ("idle", 0, 0)
    assert (state.pressure.level, state.dead) == ("green", {})


async def test_it_says_how_fast_a_consumer_is_from_the_second_look_on(
    app: Penstock, clock: FakeClock
) -> None:
    counting(app, Counting())
    await app.events.append_many(numbered(*range(256)))
    await feed.declare(app, app.consumer.get("count"))
    [before] = (await app.events.pipeline.state()).consumers
    await catch_up(app)
    clock.advance(2)
    [after] = (await app.events.pipeline.state()).consumers
    assert (before.per_second, after.per_second) == (None, 128.0)


async def test_a_paused_consumer_gets_nothing_until_it_is_resumed(app: Penstock) -> None:
    counts = counting(app, Counting())
    await feed.declare(app, app.consumer.get("count"))
    pipeline = Pipeline(app, Operator(app, "user:ann").actor)
    assert (await pipeline.pause("count")).state == "paused"
    await app.events.append_many(numbered(1))
    await catch_up(app)
    assert counts.seen == {}
    assert (await pipeline.resume("count")).state == "silent"
    await catch_up(app)
    assert counts.seen == {"s": [1]}
    entries = await app.store.audit.page(0)
    actions = {entry.action for entry in entries}
    assert actions == {"consumer.pause", "consumer.resume"}


async def test_a_consumer_that_never_ran_cannot_be_paused(app: Penstock) -> None:
    with pytest.raises(UnknownConsumer, match="'nobody'"):
        await app.events.pipeline.pause("nobody")


async def test_a_rebuild_of_all_tells_how_far_it_is(app: Penstock) -> None:
    counts = counting(app, Resetting())
    for session in "abc":
        await app.events.append_many(numbered(1, 2, session=session))
    await catch_up(app)
    whole = dict(counts.seen)
    counts.seen = {"a": [9], "b": [], "c": [7]}
    shown: list[tuple[int, int]] = []
    done = await app.events.pipeline.rebuild("count", show=lambda n, of: shown.append((n, of)))
    assert (done, counts.seen) == (3, whole)
    assert shown == [(1, 3), (2, 3), (3, 3)]


async def test_a_rebuild_of_all_goes_on_after_a_session_that_fails_and_names_it(
    app: Penstock,
) -> None:
    counts = counting(app, Resetting())
    counts.broken = False
    for session in "abc":
        await app.events.append_many(
            numbered(1, 2, session=session, bad=2 if session == "b" else 0)
        )
    await catch_up(app)
    counts.seen = {"a": [9], "c": [9]}
    counts.broken = True
    with pytest.raises(SessionsFailed, match=r"1 session.*'b' \(ValueError: event 2 is bad\)"):
        await app.events.pipeline.rebuild("count")
    assert counts.seen == {"a": [1, 2], "c": [1, 2]}


async def test_a_rebuild_of_all_leaves_out_what_was_given_up_and_still_fails(app: Penstock) -> None:
    counts = counting(app, Resetting())
    await app.events.append_many([*numbered(1, 2, bad=2), *numbered(1, session="t")])
    await catch_up(app)
    counts.seen = {"s": [9], "t": [9]}
    assert await app.events.pipeline.rebuild("count") == 2
    assert counts.seen == {"s": [1], "t": [1]}
    assert len(await app.events.dead.list()) == 1


async def test_a_rebuild_of_one_session_leaves_the_others(app: Penstock) -> None:
    counts = counting(app, Resetting())
    await app.events.append_many([*numbered(1, session="a"), *numbered(1, session="b")])
    await catch_up(app)
    counts.seen = {"a": [9], "b": [9]}
    await app.events.pipeline.rebuild("count", Session("", "", "b"))
    assert counts.seen == {"a": [9], "b": [1]}


async def test_what_cannot_reset_cannot_be_rebuilt(app: Penstock) -> None:
    counting(app, Counting())
    with pytest.raises(CannotRebuild, match="reset"):
        await app.events.pipeline.rebuild("count")


async def test_a_consumer_that_is_gone_is_forgotten_and_nothing_waits_for_it(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job(name="mail")
    async def mail() -> None: ...

    class Mailer(Resetting):
        """Enqueues a job for each event."""

        def apply(self, tx: Any, events: Sequence[Event]) -> None:
            super().apply(tx, events)
            for event in events:
                tx.enqueue(mail.new(), event=event)

    counting(app, Mailer(), "old")
    await app.events.append_many(numbered(1, 2, bad=2))
    await catch_up(app)
    monkeypatch.setattr(app.consumer, "_declared", {})
    session = Session("", "", "s")
    with pytest.raises(ConsumersMissing):
        await app.events.erase(session)
    pipeline = Pipeline(app, Operator(app, "user:ann").actor)
    await pipeline.forget("old")
    store = app.table_store("events")
    told = app.extensions.find("events").tables.tables  # type: ignore[union-attr]
    left = {
        table.name: rows
        for table in told
        if (rows := [row for row in await store.page(table, None, 999) if "old" in row.values()])
    }
    assert left == {}
    # What its jobs know of an event goes with the event.
    assert (await app.events.erase(session)).parts == {"events": 2, "jobs": 1}
    assert await app.find(limit=9) == []
    assert {entry.action for entry in await app.store.audit.page(0)} >= {"consumer.forget"}
    with pytest.raises(UnknownConsumer, match="'old'"):
        await pipeline.forget("old")


async def test_a_consumer_that_is_declared_or_runs_elsewhere_is_not_forgotten(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting(app, Counting())
    await catch_up(app)
    with pytest.raises(InvalidOption, match="declared"):
        await app.events.pipeline.forget("count")
    seen = ("count", "elsewhere:1", 1, clock.now())
    await app.transact(lambda tx: tx.events.queries.run("see_member", seen))
    monkeypatch.setattr(app.consumer, "_declared", {})
    clock.advance(50)
    with pytest.raises(InvalidOption, match="elsewhere:1"):
        await app.events.pipeline.forget("count")
    clock.advance(20)
    await app.events.pipeline.forget("count")
    assert (await app.events.pipeline.state()).consumers == []


def test_rates_forget_what_is_older_than_a_minute(kind_of_store: str) -> None:
    rates = Rates()
    rates.seen(0, {"a": 0.0})
    rates.seen(50_000, {"a": 0.0})
    assert rates.seen(70_000, {"a": 100.0}) == {"a": 5.0}
