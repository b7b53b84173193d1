"""A second look finds what rules missed, and takes it out wherever it is."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import validate as validating
from penstock.apps.recorder.captured import VALIDATION
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.models import Asked, Models, Reply
from penstock.apps.recorder.outbound import Away
from penstock.apps.recorder.validate import Looking, validate
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.store.contract import JobFilter
from penstock.testing import drain
from penstock.testing.clock import FakeClock
from tests.apps.recorder.told import LOCKED, say, session_of
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres")

NAME = "Ada Lovelace"


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    settings = Settings(**place.settings)
    async with Penstock(settings=settings, extensions=[recorder], clock=FakeClock()) as app:
        yield app


async def rows(app: Penstock, query: str, *asked: Any) -> list[tuple[Any, ...]]:
    return await app.read(lambda tx: list(tx.recorder.rows(query, asked)))


async def everything(app: Penstock) -> str:
    """All rows of all tables of events and of the recorder."""
    found = []
    for name in ("events", "recorder"):
        extension = app.extensions.find(name)
        assert extension is not None
        assert extension.tables is not None
        store = app.table_store(name)
        for table in extension.tables.tables:
            found += await store.page(table, None, 10_000)
    events = await app.events.find(EventFilter(limit=1_000))
    return f"{found} {events}"


@pytest.mark.quick("postgres")
async def test_a_name_is_gone_from_messages_log_and_what_was_derived(app: Penstock) -> None:
    conversation = await say(app, ("user", f"my name is {NAME}"), ("assistant", f"Hello {NAME}"))
    await catch_up(app)
    assert NAME in await everything(app)
    told = await validate(app, conversation, "1")
    assert told == {"skipped": False, "validated": 2, "redactions": 1}
    assert NAME not in await everything(app)
    contents = [content for _, content in await rows(app, "contents_of", conversation)]
    assert sorted(contents) == ["Hello [REDACTED_NAME]", "my name is [REDACTED_NAME]"]


async def test_a_surname_alone_is_gone_from_the_session_too(app: Penstock) -> None:
    conversation = await say(app, ("user", f"my name is {NAME}"), ("user", "so Lovelace it is"))
    await validate(app, conversation, "1")
    contents = [content for _, content in await rows(app, "contents_of", conversation)]
    assert "so [REDACTED_NAME] it is" in contents


async def test_what_was_taken_out_is_an_event_and_a_row_that_do_not_say_what(
    app: Penstock,
) -> None:
    conversation = await say(app, ("user", f"my name is {NAME}"))
    await validate(app, conversation, "1")
    events = {each.event_type: each for each in await app.events.find(EventFilter(session_id="s1"))}
    [message] = events["redaction"].payload["messages"]
    [span] = message["spans"]
    assert (span["start"], span["end"], span["category"]) == (11, 23, "name")
    assert events["validation"].payload["findings"] == 1
    store = app.table_store("recorder")
    [table] = [each for each in recorder.tables.tables if each.name == "recorder_redactions"]  # type: ignore[union-attr]
    [row] = await store.page(table, None, 10)
    assert (row["detector"], row["category"], row["replacement"]) == (
        *("ai", "name", "[REDACTED_NAME]"),
    )
    assert NAME not in str((events, row))


async def test_of_many_jobs_of_a_session_the_first_does_the_work(app: Penstock) -> None:
    for n in range(3):
        await say(app, ("user", f"message number {n}"), ends=False, begin=n)
    await drain(app)
    jobs = await app.store.reader.find(JobFilter(type=VALIDATION, limit=9))
    results = [msgspec.json.decode(job.result or "") for job in jobs]
    assert sorted(result.get("validated", 0) for result in results) == [0, 0, 3]
    assert all("reason" in result for result in results if result["skipped"])


async def test_what_another_job_looks_at_is_left_to_it_until_it_is_gone(app: Penstock) -> None:
    conversation = await say(app, ("user", f"my name is {NAME}"))
    first = Looking(app, conversation, session_of(), None, "job 1")
    assert await first.hold()
    told = await validate(app, conversation, "1", "job 2")
    assert told == {"skipped": True, "reason": "another job looks at its messages"}
    assert not await first.let_go(if_done=True), "a message waits that nobody else looks at"
    app.store.clock.advance(seconds=400)  # type: ignore[attr-defined]
    assert (await validate(app, conversation, "1", "job 2"))["validated"] == 1


async def test_a_message_says_under_which_rules_it_was_looked_at(app: Penstock) -> None:
    conversation = await say(app, *LOCKED)
    await validate(app, conversation, "7")
    found = await app.read(
        lambda tx: tx.recorder.rows(
            "messages_of", {"conversation_id": conversation, "after": 0, "limit": 9}
        )
    )
    assert {row[6] for row in found} == {"7"}
    assert all('"ai_validation_completed"' in row[7] and '"7"' in row[7] for row in found)


async def test_messages_that_are_gone_are_skipped(app: Penstock) -> None:
    told = await validate(app, "nobody", "1")
    assert told == {"skipped": True, "reason": "its messages are gone"}


class Model:
    """A model that answers what a test wants; or is away."""

    model = "claude-haiku-4-5"

    def __init__(self, value: Any) -> None:
        self.value = value
        self.asked: list[Asked] = []

    async def ask(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if isinstance(self.value, Exception):
            raise self.value
        return Reply(value=self.value, input_tokens=100, output_tokens=10)


def answering(monkeypatch: pytest.MonkeyPatch, value: Any) -> Model:
    model = Model(value)
    monkeypatch.setattr(validating, "Models", lambda app: Models(app, model))
    return model


async def test_what_a_model_quotes_is_taken_out(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await say(app, ("user", "ship it to blue moon bakery, not to zed"))
    found = [
        {"number": 1, "quote": "blue moon bakery", "category": "organisation"},
        {"number": 1, "quote": "not in the text", "category": "name"},
        {"number": 9, "quote": "zed", "category": "name"},
    ]
    model = answering(monkeypatch, {"findings": found})
    await validate(app, conversation, "1")
    [(_, content)] = await rows(app, "contents_of", conversation)
    assert content == "ship it to [REDACTED_ORGANISATION], not to zed"
    assert "blue moon" in model.asked[0].text
    assert "blue moon" not in await everything(app)


@pytest.mark.parametrize(
    "prose", [None, {"error": "I cannot do that"}, {"findings": [{"quote": "I'm sorry"}]}, "oops"]
)
async def test_what_is_no_answer_is_not_taken_for_one(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, prose: Any
) -> None:
    conversation = await say(app, ("user", f"my name is {NAME}"))
    answering(monkeypatch, prose)
    told = await validate(app, conversation, "1")
    assert told["redactions"] == 1, "the local detector has looked all the same"


async def test_while_the_model_is_away_the_job_waits(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(app, ("user", f"my name is {NAME}"))
    model = answering(monkeypatch, Away("The model", "no answer"))
    await drain(app)
    [job] = await app.store.reader.find(JobFilter(type=VALIDATION, limit=9))
    assert (job.status, job.attempts, job.snoozes) == ("pending", 0, 1)
    assert len(model.asked) == 1
