"""A complete conversation is looked through once, and what is new in it is kept."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import complete
from penstock.apps.recorder import learn as learning
from penstock.apps.recorder.complete import EXTRACT, look
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.extract import EXTRACTOR
from penstock.apps.recorder.learn import learn
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.models import Models
from penstock.apps.recorder.records import LearningFilter
from penstock.apps.recorder.validate import validate
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.store.contract import JobFilter
from penstock.testing import drain
from penstock.testing.clock import FakeClock
from tests.apps.recorder.test_validate import Model
from tests.apps.recorder.told import LOCKED, say
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres")

QUIET = 300
USUAL = {"min_confidence": 0.6, "categories": []}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    settings = Settings(**place.settings)
    async with Penstock(settings=settings, extensions=[recorder], clock=clock) as app:
        yield app


async def extractions(app: Penstock) -> list[dict[str, Any]]:
    """What the extractions that ran have said."""
    jobs = await app.store.reader.find(JobFilter(type=EXTRACT, limit=100))
    return [msgspec.json.decode(job.result) for job in jobs if job.result]


async def enqueued(app: Penstock) -> int:
    return len(await app.store.reader.find(JobFilter(type=EXTRACT, limit=100)))


@pytest.mark.quick("postgres")
async def test_a_session_that_ended_is_looked_through_when_all_of_it_is_validated(
    app: Penstock,
) -> None:
    conversation = await say(app, *LOCKED)
    assert await look(app) == 0, "messages of it wait"
    await validate(app, conversation, "1")
    assert await enqueued(app) == 1
    await drain(app)
    [found] = await Learnings(app).list()
    assert found.category == "bug_fix"
    assert "BEGIN IMMEDIATE" in found.content
    assert len(found.source_message_ids) == 1


async def test_a_session_without_an_end_is_complete_when_it_has_been_quiet(
    app: Penstock, clock: FakeClock
) -> None:
    await say(app, *LOCKED, ends=False)
    await drain(app)
    assert (await look(app), await enqueued(app)) == (0, 0)
    clock.advance(seconds=QUIET - 1)
    assert await look(app) == 0
    await app.events.append("trace", session_id="s1", platform="claude_code")
    clock.advance(seconds=10)
    assert await look(app) == 0, "something was heard of it"
    clock.advance(seconds=QUIET)
    assert await look(app) == 1
    await drain(app)
    assert [each["learnings"] for each in await extractions(app)] == [1]


async def test_a_version_is_looked_through_once(app: Penstock, clock: FakeClock) -> None:
    conversation = await say(app, *LOCKED)
    await drain(app)
    told = await learn(app, conversation, **USUAL)  # type: ignore[arg-type]
    assert told == {"skipped": True, "reason": f"version {EXTRACTOR}.5 was looked through"}
    clock.advance(seconds=QUIET)
    assert await look(app) == 0


async def test_a_session_that_goes_on_is_looked_through_again(
    app: Penstock, clock: FakeClock
) -> None:
    await say(app, *LOCKED)
    await drain(app)
    clock.advance(seconds=60)
    await say(app, ("user", "and busy_timeout?"), ends=False, begin=10)
    await drain(app)
    assert len(await extractions(app)) == 1, "it may still go on"
    clock.advance(seconds=QUIET + 1)
    await look(app)
    await drain(app)
    assert len(await extractions(app)) == 2
    assert len(await Learnings(app).list()) == 1


async def test_small_talk_does_not_pass_the_value_gate(app: Penstock) -> None:
    await say(app, ("user", "hi"), ("assistant", "Hello!"), ("user", "bye"))
    await say(app, ("user", "hi"), session="s2")
    await drain(app)
    assert {each["outcome"] for each in await extractions(app)} == {
        *("below the value gate", "fewer than 3 messages"),
    }
    assert await Learnings(app).list() == []


async def test_the_same_learning_of_another_session_is_there_once(app: Penstock) -> None:
    await say(app, *LOCKED)
    await drain(app)
    again = [(role, text.replace("nightly", "hourly")) for role, text in LOCKED]
    await say(app, *again, session="s2")
    await drain(app)
    assert sorted(each["repeated"] for each in await extractions(app)) == [0, 1]
    assert len(await Learnings(app).list()) == 1


async def test_a_changed_fact_takes_the_place_of_the_old_one_which_stays(app: Penstock) -> None:
    def told(number: int) -> tuple[tuple[str, str], ...]:
        rule = f"always limit the pool of database connections to {number} per worker"
        return (
            ("user", "the database refuses connections"),
            ("assistant", "There are too many open connections, which fails under load."),
            ("user", f"{rule}, because the server refuses more than that"),
            ("tool", "12 passed"),
            ("user", "thanks, works"),
        )

    await say(app, *told(20))
    await drain(app)
    [old] = await Learnings(app).list()
    await say(app, *told(40), session="s2")
    await drain(app)
    [new] = await Learnings(app).list(LearningFilter(status="proposed"))
    [gone] = await Learnings(app).list(LearningFilter(status="superseded"))
    assert (gone.id, gone.superseded_by) == (old.id, new.id)
    assert "40" in new.content
    before = sorted(await Learnings(app).list(), key=lambda each: each.id)
    await catch_up(app, "learnings")
    await app.events.pipeline.rebuild("learnings")
    assert sorted(await Learnings(app).list(), key=lambda each: each.id) == before


DRAFT = {
    "category": "bug_fix",
    "title": "Deferred transactions lock",
    "content": "Open writing transactions with BEGIN IMMEDIATE.",
    "messages": [3],
    "actionable": 0.9,
    "general": 0.9,
    "clear": 0.9,
    "supported": 0.9,
}


async def test_a_model_finds_them_and_what_it_makes_up_is_left_out(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = [
        DRAFT,
        {**DRAFT, "category": "gossip"},
        {**DRAFT, "title": "From nowhere", "messages": [99]},
        {**DRAFT, "title": "Weak", "actionable": 0.1, "general": 0.1},
        {**DRAFT, "title": " "},
    ]
    model = Model({"learnings": drafts})
    monkeypatch.setattr(learning, "Models", lambda app: Models(app, model))
    conversation = await say(app, *LOCKED)
    await validate(app, conversation, "1")
    await learn(app, conversation, **USUAL)  # type: ignore[arg-type]
    [found] = await Learnings(app).list()
    assert (found.title, found.source) == (DRAFT["title"], "claude-haiku-4-5")
    assert found.confidence == pytest.approx(0.9)


async def test_a_rebuild_asks_no_model(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model({"learnings": [DRAFT]})
    monkeypatch.setattr(learning, "Models", lambda app: Models(app, model))
    conversation = await say(app, *LOCKED)
    await validate(app, conversation, "1")
    await learn(app, conversation, **USUAL)  # type: ignore[arg-type]
    before = await Learnings(app).list()
    await catch_up(app, "learnings")
    await app.events.pipeline.rebuild("learnings")
    assert await Learnings(app).list() == before
    assert len(model.asked) == 1


async def test_prose_of_a_model_is_no_learning(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model({"error": "I'm sorry, I cannot help with that."})
    monkeypatch.setattr(learning, "Models", lambda app: Models(app, model))
    conversation = await say(app, *LOCKED)
    await validate(app, conversation, "1")
    await learn(app, conversation, **USUAL)  # type: ignore[arg-type]
    [found] = await Learnings(app).list()
    assert found.source == "offline"


async def test_when_too_many_wait_some_are_left_out_and_it_is_said(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(8):
        await say(app, ("user", "hello there"), session=f"s{n}", ends=False)
    await drain(app)
    clock.advance(seconds=QUIET + 1)
    monkeypatch.setattr(complete, "MOST_WAITING", 2)
    taken = await look(app)
    said = [
        event.payload["outcome"]
        for event in await app.events.find(EventFilter(event_type="extraction"))
    ]
    assert taken + len(said) == 8
    assert said
    assert all("1 of 4 is looked through" in each for each in said)
    assert await look(app) == 0
