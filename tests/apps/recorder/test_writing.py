"""The way in: events, messages, what was taken out and jobs, in one commit and once."""

from collections.abc import AsyncIterator

import pytest

from penstock import Penstock, QueueFull
from penstock.apps.recorder import captured
from penstock.apps.recorder.captured import (
    QUEUE,
    VALIDATION,
    Captured,
    Message,
    Redaction,
    conversation_id,
    hook_event_id,
    message_id,
)
from penstock.apps.recorder.writing import Written, write
from penstock.events.log import EventFilter
from tests.support.places import Place

pytestmark = pytest.mark.every_store
NOW = 1_794_830_400_000
FOUND = Redaction("pii", "email", "5f3a", "[REDACTED_EMAIL]", 0.99)


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    if place.kind == "valkey":
        pytest.skip("it has no tables")
    async with Penstock(**place.settings, extensions=["events", "recorder"]) as made:
        yield made


def told(n: int, *, at: int = NOW, source: str = "hook", unique: bool = True) -> Captured:
    """A prompt of a session."""
    return Captured(
        platform="claude_code",
        session_id="s1",
        hook_type="UserPromptSubmit",
        event_type="user_prompt",
        event_id=hook_event_id((str(n),), at, unique=unique),
        timestamp=at,
        payload={"prompt": f"number {n}"},
        source=source,
        messages=(Message("user", f"number {n}", redactions=(FOUND,)),),
        redactions=(FOUND,),
    )


async def kept(app: Penstock) -> list[tuple[object, ...]]:
    asked = {
        "conversation_id": conversation_id("", "claude_code", "s1"),
        "after": 0,
        "limit": 500,
    }
    return await app.read(lambda tx: tx.recorder.rows("messages_of", asked))


async def test_a_long_message_is_kept_in_parts_and_read_as_one(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured, "LONGEST_PART", 20)
    long = "one two three four\nfive six seven " + "x" * 50 + " the end"
    some = [
        told(1),
        told(2)._replace(messages=(Message("user", long, 40, {"tool_name": "Bash"}),)),
        told(3),
    ]
    await write(app, some)
    await write(app, some)
    rows = await kept(app)
    assert len(rows) == 7
    assert all(len(str(row[2])) <= 20 for row in rows)
    id_ = conversation_id("", "claude_code", "s1")
    found = await app.recorder.sessions.messages(id_)
    assert [each.content for each in found] == ["number 1", long, "number 3"]
    assert [each.token_count for each in found] == [None, 40, None]
    paged = []
    while more := await app.recorder.sessions.messages(
        id_, after=paged[-1].sequence if paged else 0, limit=1
    ):
        paged += more
    assert paged == found


async def test_all_of_it_is_written_and_only_once(app: Penstock) -> None:
    batch = [told(1), told(2, at=NOW + 1)]
    assert await write(app, batch) == Written(2, 2)
    assert await write(app, batch) == Written(0, 0)
    assert [(row[2], row[3]) for row in await kept(app)] == [("number 1", 1), ("number 2", 2)]
    assert len(await app.events.find()) == 2


async def test_two_hooks_that_were_told_the_same_are_one_event(app: Penstock) -> None:
    assert await write(
        app, [told(1, unique=False), told(1, at=NOW + 900, unique=False)]
    ) == Written(1, 1)
    assert await write(app, [told(1, at=NOW + 1_500, unique=False)]) == Written(0, 0)
    assert await write(app, [told(1, at=NOW + 60_000, unique=False)]) == Written(1, 1)
    assert await write(app, [told(2)]) == Written(1, 1)
    assert await write(app, [told(2, at=NOW + 60_000)]) == Written(0, 0)


async def test_what_was_imported_is_validated_many_messages_to_a_job(app: Penstock) -> None:
    batch = [told(n, at=NOW + n, source="transcript") for n in range(120)]
    assert await write(app, batch) == Written(120, 120)
    jobs = await app.find(type=VALIDATION)
    assert len(jobs) == 3
    assert {job.queue for job in jobs} == {QUEUE}
    first = message_id(told(0).event_id, 0)
    assert f"sanitize-ai-validation-{first}" in {job.key for job in jobs}


async def test_a_full_queue_takes_nothing_of_it(app: Penstock) -> None:
    await app.controls.set_limit(queue=QUEUE, depth=1)
    await write(app, [told(1)])
    with pytest.raises(QueueFull):
        await write(app, [told(2), told(3)])
    assert len(await app.events.find(EventFilter())) == 1
    assert len(await kept(app)) == 1
