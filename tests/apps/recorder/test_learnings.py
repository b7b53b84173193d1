"""Learnings are listed, searched and changed, and every change is an event that can be replayed."""

from collections.abc import AsyncIterator

import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.learnings import CannotChange, LearningNotFound, Learnings, apply
from penstock.apps.recorder.records import LearningFilter
from penstock.events.event import Session
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Actor
from penstock.testing.clock import FakeClock
from tests.apps.recorder.publishing import a_learning
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres")


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    settings = Settings(**place.settings)
    async with Penstock(settings=settings, extensions=[recorder], clock=FakeClock()) as app:
        yield app


@pytest.mark.quick("postgres")
async def test_they_are_listed_page_by_page_the_latest_first(app: Penstock) -> None:
    made = [await a_learning(app, f"Number {n}") for n in range(5)]
    learnings, listed = Learnings(app), []
    before = None
    while page := await learnings.list(LearningFilter(before=before, limit=2)):
        listed += page
        before = page[-1].id
    assert sorted(each.id for each in listed) == sorted(each.id for each in made)
    ordered = [(each.created_at, each.id) for each in listed]
    assert ordered == sorted(ordered, reverse=True)


async def test_they_are_found_by_the_words_they_say(app: Penstock) -> None:
    one = await a_learning(app, "Connections are pooled")
    await a_learning(app, "Retries back off")
    found = await Learnings(app).list(LearningFilter(text="connection"))
    assert [each.id for each in found] == [one.id]
    assert not await Learnings(app).list(LearningFilter(text='"; DROP TABLE x'))


async def test_one_that_was_edited_is_found_by_its_new_words_alone(app: Penstock) -> None:
    one = await a_learning(app, "Zebras are striped", content="They are.")
    await Learnings(app).edit(one.id, title="Lions are yellow")
    assert await Learnings(app).list(LearningFilter(text="lions"))
    assert not await Learnings(app).list(LearningFilter(text="zebras"))


async def test_they_are_approved_rejected_and_counted(app: Penstock) -> None:
    one, other = await a_learning(app, "One"), await a_learning(app, "Other")
    learnings = Learnings(app, Actor("user:ann"))
    approved = await learnings.approve(one.id)
    assert (approved.status, approved.decided_by) == ("approved", "user:ann")
    await learnings.reject(other.id)
    assert await learnings.counts() == {"approved": 1, "rejected": 1}
    assert [each.id for each in await learnings.list(LearningFilter(status="rejected"))] == [
        other.id
    ]


async def test_the_beginning_of_an_id_names_one(app: Penstock) -> None:
    one = await a_learning(app)
    assert (await Learnings(app).get(one.id[:10])).id == one.id
    with pytest.raises(LearningNotFound):
        await Learnings(app).get("nonsense")


async def test_a_tenant_sees_and_changes_its_own_alone(app: Penstock) -> None:
    one = await a_learning(app)
    stranger = Learnings(app, Actor("user:eve", tenant="evil"))
    assert not await stranger.list()
    with pytest.raises(LearningNotFound):
        await stranger.approve(one.id)
    assert (await Learnings(app).get(one.id)).status == "proposed"


async def test_an_edit_that_says_what_another_says_is_refused(app: Penstock) -> None:
    one, other = await a_learning(app, "One"), await a_learning(app, "Other")
    with pytest.raises(CannotChange, match=one.id):
        await Learnings(app).edit(other.id, title=one.title, content=one.content)


@pytest.mark.parametrize(
    "change", [{"title": " "}, {"content": ""}, {"category": "gossip"}, {"title": "x" * 300}]
)
async def test_an_edit_that_makes_no_sense_is_refused(
    app: Penstock, change: dict[str, str]
) -> None:
    one = await a_learning(app)
    with pytest.raises(InvalidOption):
        await Learnings(app).edit(one.id, **change)  # type: ignore[arg-type]


async def test_what_was_never_published_is_not_revoked(app: Penstock) -> None:
    one = await a_learning(app)
    with pytest.raises(CannotChange, match="reject it instead"):
        await Learnings(app).revoke(one.id)


async def test_a_rebuild_makes_the_same_of_the_events_alone(app: Penstock) -> None:
    one, other = await a_learning(app, "One"), await a_learning(app, "Other")
    learnings = Learnings(app)
    await learnings.edit(one.id, title="First", tags=["new"])
    await learnings.approve(one.id)
    await learnings.edit(one.id, title="Second")
    await learnings.reject(other.id)
    before = await learnings.list()
    await catch_up(app)
    assert await learnings.list() == before, "what was applied before changes nothing"
    await app.events.pipeline.rebuild("learnings")
    assert await learnings.list() == before


async def test_an_event_that_is_applied_late_does_not_undo_a_later_one(app: Penstock) -> None:
    one = await a_learning(app, "One")
    await Learnings(app).edit(one.id, title="First")
    await Learnings(app).edit(one.id, title="Second")
    late = await app.events.find(EventFilter(session_id="s One", event_type="learning_edit"))
    await app.transact(lambda tx: apply(tx, late[:1]))
    assert (await Learnings(app).get(one.id)).title == "Second"


async def test_they_go_with_their_session(app: Penstock) -> None:
    one, other = await a_learning(app, "Zebras"), await a_learning(app, "Lions")
    await Learnings(app).approve(one.id)
    await catch_up(app)
    await app.events.erase(Session("", "cursor", "s Zebras"))
    assert [each.id for each in await Learnings(app).list()] == [other.id]
    assert not await Learnings(app).list(LearningFilter(text="zebras"))
    assert not await app.events.find(EventFilter(session_id="s Zebras"))
