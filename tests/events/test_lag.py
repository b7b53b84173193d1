"""How far behind consumers are, in events and in time."""

from collections.abc import AsyncIterator

import pytest

from penstock import Penstock
from penstock.events import feed, lag
from penstock.events.consumer import consumer_of
from penstock.events.event import NewEvent
from penstock.events.feed import Lane
from penstock.events.lag import Lag, lags
from penstock.events.pool import PoolWorker, catch_up
from penstock.testing.clock import FakeClock
from tests.support.places import find_place


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    async with Penstock(place.url, clock=clock) as made:
        made.consumer.add(consumer_of(lambda tx, events: None, name="all"))
        made.consumer.add(consumer_of(lambda tx, events: None, name="some", types=["tool_use"]))
        yield made


async def append(app: Penstock, count: int, *types: str, session: str = "") -> None:
    await app.events.append_many(
        [NewEvent(event_type=types[n % len(types)], session_id=session) for n in range(count)]
    )


async def of(app: Penstock, name: str) -> Lag:
    return next(each for each in await lags(app) if each.consumer == name)


async def test_a_consumer_is_behind_by_the_events_of_its_types(
    app: Penstock, clock: FakeClock
) -> None:
    await catch_up(app)
    await append(app, 3, "debug")
    clock.advance(7)
    await append(app, 10, "tool_use", "debug")
    clock.advance(2)
    found = {each.consumer: (each.depth, each.lag_ms) for each in await lags(app)}
    assert found == {"all": (13, 9_000), "some": (5, 2_000)}
    await catch_up(app)
    assert {(each.depth, each.lag_ms) for each in await lags(app)} == {(0, 0)}


async def test_what_a_slot_has_passed_does_not_wait(app: Penstock) -> None:
    await append(app, 20, "tool_use")
    consumer = app.consumer.get("all")
    await feed.declare(app, consumer)
    worker = PoolWorker(app, consumer)
    worker.wanted = (0, 127)
    while await worker.turn():
        continue
    events = await app.events.find()
    assert (await of(app, "all")).depth == sum(event.slot > 127 for event in events)
    assert worker.lanes == [Lane(first=0, last=127, position=20, marks=0)]


async def test_of_thousands_it_is_estimated_by_reading_a_few(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "WINDOW", 10)
    await append(app, 400, "tool_use", "debug", "debug", "debug")
    for consumer in app.consumer.known().values():
        await feed.declare(app, consumer)
    assert (await of(app, "all")).depth == 400
    assert (await of(app, "some")).depth == pytest.approx(100, rel=0.25)


async def test_whoever_sees_rare_events_is_as_late_as_the_first_that_it_may_have_missed(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "WINDOW", 2)
    await append(app, 40, "debug")
    clock.advance(9)
    for consumer in app.consumer.known().values():
        await feed.declare(app, consumer)
    found = await of(app, "some")
    assert (found.depth, found.lag_ms) == (0, 9_000)


async def test_a_consumer_that_is_declared_otherwise_is_known_otherwise_at_once(
    app: Penstock,
) -> None:
    await feed.declare(app, consumer_of(lambda tx, events: None, name="all", workers=2, batch=7))
    found = await of(app, "all")
    assert (found.wanted, found.batch, found.role) == (2, 7, "normal")
    changed = consumer_of(lambda tx, events: None, name="all", workers=3, batch=7, role="vital")
    await feed.declare(app, changed)
    found = await of(app, "all")
    assert (found.wanted, found.batch, found.role) == (3, 7, "vital")
