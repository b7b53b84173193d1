"""Conversations are made of events as golden files say, and the same in whatever way they come."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import conversations, insights, metrics
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.writing import write
from penstock.events import EventFilter, catch_up
from penstock.events.consumer import Applying, Consumer
from penstock.events.event import Event, Session
from penstock.testing import FakeClock
from tests.apps.recorder import goldens
from tests.support.places import find_place

CONSUMERS = (conversations.consumer, metrics.consumer, insights.consumer)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(goldens.NOON + 100_000)


@pytest.fixture
async def app(
    request: pytest.FixtureRequest, clock: FakeClock, kind: str = "sqlite"
) -> AsyncIterator[Penstock]:
    kind = request.getfixturevalue("kind") if "kind" in request.fixturenames else kind
    async with Penstock(find_place(kind, request).url, extensions=[recorder], clock=clock) as app:
        yield app


async def told(app: Penstock, path: Path) -> tuple[dict[str, Any], Session]:
    """Write what a golden file tells; the file, and its session."""
    golden = goldens.load(path)
    captured = list(goldens.captured(golden))
    for one in captured:
        await write(app, [one])
    first = next(one for one in captured if one.platform == golden["platform"])
    return golden, Session("", first.platform, first.session_id)


@pytest.mark.parametrize("path", goldens.FILES, ids=lambda path: path.stem)
async def test_a_conversation_is_as_its_golden_file_says(app: Penstock, path: Path) -> None:
    golden, session = await told(app, path)
    for consumer in CONSUMERS:
        await catch_up(app, consumer.name)
    view = await Sessions(app).get(session.session_id)
    assert goldens.lean(view) == golden["conversation"]


async def digest(app: Penstock, consumer: Consumer, session: Session) -> Any:
    assert consumer.digest is not None
    found = consumer.digest
    return await app.read(lambda tx: found(tx, session))


async def apply(app: Penstock, consumer: Consumer, events: list[Event]) -> None:
    prepared = await consumer.prepared(events)
    await app.transact(lambda tx: consumer.apply(Applying(tx, consumer.name), prepared))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_event_by_event_makes_the_same_as_all_at_once(app: Penstock, kind: str) -> None:
    files = goldens.FILES if kind == "sqlite" else goldens.FILES[:2]
    for path in files:
        _, session = await told(app, path)
        wanted = EventFilter(session_id=session.session_id, limit=1_000)
        events = await app.events.find(wanted)
        for consumer in CONSUMERS:
            for event in events:
                await apply(app, consumer, [event])
            one_by_one = await digest(app, consumer, session)

            def reset(tx: Any, consumer: Consumer = consumer, session: Session = session) -> None:
                assert consumer.reset is not None
                consumer.reset(Applying(tx, consumer.name), session)

            await app.transact(reset)
            nothing = await digest(app, consumer, session)
            assert not any(nothing), "a reset leaves nothing"
            await apply(app, consumer, events)
            assert await digest(app, consumer, session) == one_by_one, (path.stem, consumer.name)


async def test_a_rebuild_makes_the_same_as_what_came_by_and_by(app: Penstock) -> None:
    _, session = await told(app, goldens.FOLDER / "claude_code.json")
    for consumer in CONSUMERS:
        await catch_up(app, consumer.name)
        before = await digest(app, consumer, session)
        await app.events.pipeline.rebuild(consumer.name)
        assert await digest(app, consumer, session) == before


async def test_what_we_say_about_a_session_is_not_part_of_it(app: Penstock) -> None:
    await told(app, goldens.FOLDER / "antigravity.json")
    await catch_up(app, conversations.NAME)
    before = await Sessions(app).get("anti-1")
    await app.events.append("redaction", session_id="anti-1", platform="antigravity")
    await app.events.append("validation", session_id="other", platform="antigravity")
    await catch_up(app, conversations.NAME)
    assert await Sessions(app).get("anti-1") == before
    assert len(await Sessions(app).list()) == 1, "and alone it makes none"
