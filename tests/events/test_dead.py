"""Dead letters of events: listed by who gave them up, replayed once, dropped on record."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Penstock, Settings
from penstock.events.consumer import UnknownConsumer
from penstock.events.dead import DeadEvent, DeadEvents, LetterNotFound
from penstock.events.event import InvalidEvent, NewEvent
from penstock.events.pool import catch_up
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Actor, Operator
from penstock.store.contract.metrics import DAY_MS
from tests.events.counting import Counting, Resetting, counting, numbered
from tests.support.places import Place

LONG_AGO = 1_700_000_000_000

pytestmark = [
    pytest.mark.parametrize("kind_of_store", ["sqlite", "postgres"]),
    pytest.mark.thorough("postgres"),
]


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    async with Penstock(**place.settings) as made:
        yield made


async def fail(app: Penstock, counts: Counting, **fields: Any) -> str:
    """Have the second of three events given up; its dead letter."""
    await app.events.append_many(numbered(1, 2, 3, bad=2, **fields))
    await catch_up(app)
    counts.broken = False
    return (await app.events.dead.list())[0].id


@pytest.mark.quick("postgres")
async def test_a_letter_says_who_gave_up_what_and_why(app: Penstock) -> None:
    letter = await app.events.dead.get(await fail(app, counting(app, Counting())))
    assert (letter.source, letter.sequence, letter.session_id) == ("count", 2, "s")
    assert letter.reason == "ValueError: event 2 is bad"
    assert await app.events.dead.count() == {"count": 1}


async def test_a_replay_makes_the_session_anew_with_the_event_in_its_place(app: Penstock) -> None:
    counts = counting(app, Resetting())
    letter = await fail(app, counts)
    assert counts.seen == {"s": [1, 3]}
    assert await app.events.dead.replay(letter) == 3
    assert counts.seen == {"s": [1, 2, 3]}
    assert await app.events.dead.list() == []
    assert await app.read(lambda tx: tx.events.queries.rows("count_marked")) == []


async def test_a_consumer_that_cannot_reset_applies_the_event_alone(app: Penstock) -> None:
    counts = counting(app, Counting())
    letter = await fail(app, counts)
    assert await app.events.dead.replay(letter) == 1
    assert counts.seen == {"s": [1, 3, 2]}
    assert await app.read(lambda tx: tx.events.queries.rows("count_marked")) == []
    with pytest.raises(LetterNotFound):
        await app.events.dead.replay(letter)
    assert counts.seen == {"s": [1, 3, 2]}


async def fail_long_ago(app: Penstock, counts: Counting) -> str:
    """The same in a month that can be archived, with one event after it."""
    letter = await fail(app, counts, timestamp=LONG_AGO)
    await app.events.append("trace", session_id="later")
    await catch_up(app)
    return letter


async def test_a_letter_whose_event_was_archived_is_replayed_from_there(
    place: Place, tmp_path: Path
) -> None:
    told = Settings(**place.settings, extension={"events": {"archive": str(tmp_path)}})
    async with Penstock(settings=told) as app:
        counts = counting(app, Counting(), types=("tool_use",))
        letter = await fail_long_ago(app, counts)
        assert [each.rows for each in await app.events.archive(LONG_AGO + 40 * DAY_MS)] == [3]
        assert await app.events.dead.replay(letter) == 1
        assert counts.seen == {"s": [1, 3, 2]}
        assert await app.events.dead.list() == []


async def test_a_letter_whose_event_is_nowhere_stays_and_says_so(app: Penstock) -> None:
    counts = counting(app, Counting())
    letter = await fail(app, counts)
    event = (await app.events.find())[1]
    erased = ("erased", b"", event.sequence, event.timestamp, "zstd")
    await app.transact(lambda tx: tx.events.queries.run("recompress", erased))
    with pytest.raises(InvalidOption, match="still in the log or the archive"):
        await app.events.dead.replay(letter)
    assert counts.seen == {"s": [1, 3]}
    assert [each.id for each in await app.events.dead.list()] == [letter]
    assert len(await app.read(lambda tx: tx.events.queries.rows("count_marked"))) == 1


async def test_an_event_that_is_erased_while_it_is_replayed_is_not_applied(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counting(app, Counting())
    letter = await fail(app, counts)
    found = app.events.dead._events_of

    async def late(given: DeadEvent) -> Any:
        events = await found(given)
        if events:
            await app.events.erase(given.session)
        return events

    monkeypatch.setattr(app.events.dead, "_events_of", late)
    with pytest.raises((LetterNotFound, InvalidOption)):
        await app.events.dead.replay(letter)
    assert 2 not in counts.seen.get("s", [])


async def test_a_session_stays_incomplete_until_its_last_letter_is_replayed(app: Penstock) -> None:
    counts = counting(app, Counting())
    await app.events.append_many([*numbered(1, bad=1), *numbered(2, bad=2)])
    await catch_up(app)
    counts.broken = False
    second, first = await app.events.dead.list()
    await app.events.dead.replay(first.id)
    marked = await app.read(lambda tx: tx.events.queries.rows("count_marked"))
    assert [tuple(row) for row in marked] == [("count", "incomplete", 1)]
    await app.events.dead.replay(second.id)
    assert await app.read(lambda tx: tx.events.queries.rows("count_marked")) == []


async def test_a_session_that_waits_goes_on_with_the_replay(app: Penstock) -> None:
    counts = counting(app, Counting(), failing="wait")
    letter = await fail(app, counts)
    assert counts.seen == {"s": [1]}
    with pytest.raises(InvalidOption, match="waits for its replay"):
        await app.events.dead.drop(letter)
    assert await app.events.dead.replay(letter) == 2
    assert counts.seen == {"s": [1, 2, 3]}


async def test_what_fails_again_stays_with_its_letter(app: Penstock) -> None:
    counts = counting(app, Resetting())
    letter = await fail(app, counts)
    counts.broken = True
    with pytest.raises(ValueError, match="event 2 is bad"):
        await app.events.dead.replay(letter)
    done, refused = await app.events.dead.replay_all("count")
    assert (done, list(refused)) == (0, [letter])
    assert "event 2 is bad" in refused[letter]
    assert [each.id for each in await app.events.dead.list()] == [letter]


async def test_all_letters_of_a_source_are_replayed_with_a_count(app: Penstock) -> None:
    counts = counting(app, Resetting())
    for session in ("a", "b", "b"):
        await app.events.append_many(numbered(1, bad=1, session=session))
    await catch_up(app)
    counts.broken = False
    shown: list[tuple[int, int]] = []
    done, refused = await app.events.dead.replay_all(
        "count", show=lambda n, of: shown.append((n, of))
    )
    assert (done, refused, shown[-1]) == (3, {}, (3, 3))
    assert await app.events.dead.count() == {}


async def test_a_letter_whose_consumer_is_not_here_says_so(app: Penstock, place: Place) -> None:
    letter = await fail(app, counting(app, Counting()))
    async with Penstock(**place.settings) as other:
        with pytest.raises(UnknownConsumer, match="'count'"):
            await other.events.dead.replay(letter)


async def test_a_dropped_letter_is_gone_and_on_record(app: Penstock) -> None:
    letter = await fail(app, counting(app, Resetting()))
    await DeadEvents(app, Operator(app, "user:ann").actor).drop(letter)
    assert await app.events.dead.list() == []
    entries = await app.store.audit.page(0)
    assert [(entry.actor, entry.action) for entry in entries] == [("user:ann", "event.drop")]


async def bury(app: Penstock, document: str | None, *, tenant: str = "") -> str:
    """What ingest leaves of an event that it could not append."""
    row = ("01L", "ingest", None, "e1", "tool_use", "", "s", tenant, None, "full", 3, 9, "ab", 1)
    await app.transact(lambda tx: tx.events.queries.run("bury", (*row, document)))
    return "01L"


async def test_what_ingest_gave_up_is_appended(app: Penstock) -> None:
    event = NewEvent(event_type="tool_use", event_id="e1", timestamp=5, payload={"n": 1})
    letter = await bury(app, msgspec.json.encode(event).decode())
    assert await app.events.dead.replay(letter) == 1
    assert (await app.events.get("e1")).payload == {"n": 1}
    assert await app.events.dead.list("ingest") == []


@pytest.mark.parametrize(
    ("document", "error", "words"),
    [
        (None, InvalidOption, "more than its size"),
        ('{"event_type": ""}', InvalidEvent, "event_type"),
        ('{"event_type": 5}', InvalidEvent, "does not fit"),
    ],
)
async def test_what_cannot_be_appended_stays(
    app: Penstock, document: str | None, error: type[Exception], words: str
) -> None:
    letter = await bury(app, document)
    with pytest.raises(error, match=words):
        await app.events.dead.replay(letter)
    assert len(await app.events.dead.list("ingest")) == 1


async def test_who_is_bound_to_a_tenant_sees_its_letters_alone(app: Penstock) -> None:
    letter = await bury(app, None, tenant="north")
    north, south = (DeadEvents(app, Actor("x", tenant)) for tenant in ("north", "south"))
    assert [each.id for each in await north.list()] == [letter]
    assert await south.list() == []
    with pytest.raises(LetterNotFound):
        await south.drop(letter)
    await north.drop(letter)
    assert await app.events.dead.list() == []


async def test_letters_are_listed_page_by_page(app: Penstock) -> None:
    counting(app, Counting())
    for session in "abc":
        await app.events.append_many(numbered(1, bad=1, session=session))
    await catch_up(app)
    first = await app.events.dead.list(limit=2)
    rest = await app.events.dead.list(before=first[-1].id, limit=2)
    assert len({letter.session_id for letter in (*first, *rest)}) == 3
    with pytest.raises(InvalidOption, match="limit"):
        await app.events.dead.list(limit=0)
