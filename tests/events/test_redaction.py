"""A text that is taken out of a session is gone from the log, the archive and what was derived."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.events.consumer import consumer_of
from penstock.events.event import NewEvent, Session
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.events.redaction import redact_session
from penstock.testing.clock import FakeClock
from tests.support.events import DAY, NOON, an_event, events_app

NAME = "Ada Lovelace"
S1 = Session("acme", "shop", "s1")
TOLD = NewEvent(event_type="redaction", session_id="s1", platform="shop", tenant_id="acme")


class Texts:
    """A consumer that keeps what it has read."""

    def __init__(self) -> None:
        self.of: dict[Session, list[str]] = {}

    def apply(self, tx: Any, events: Any) -> None:
        for event in events:
            self.of.setdefault(event.session, []).append(str(event.payload))

    def reset(self, tx: Any, session: Session) -> None:
        self.of.pop(session, None)


def without(text: str) -> str:
    return text.replace(NAME, "[REDACTED_NAME]")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def app(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Penstock]:
    async with events_app(request.param, request, clock, tmp_path) as app:
        yield app


@pytest.fixture
def texts(app: Penstock) -> Texts:
    made = Texts()
    app.consumer.add(consumer_of(made, name="texts", types=["tool_use"]))
    return made


def told_of(session: str, n: int, text: str = f"from {NAME}") -> NewEvent:
    payload = {"amount": n, "deep": [{"text": text}]}
    return an_event(
        session,
        tenant_id="acme",
        event_id=f"{session}-{n}",
        timestamp=NOON + n,
        payload=payload,
        metadata={"cwd": f"/home/{text}"},
    )


async def fill(app: Penstock) -> None:
    await app.events.append_many([told_of("s1", 1), told_of("s1", 2, "nobody"), told_of("s2", 1)])


async def test_it_is_gone_from_the_session_and_stays_in_others(app: Penstock, texts: Texts) -> None:
    await fill(app)
    await catch_up(app)
    assert NAME in str(texts.of[S1])
    assert await redact_session(app, S1, without, [TOLD]) == 1
    events = await app.events.find(EventFilter(session_id="s1", tenant="acme"))
    assert NAME not in str(events)
    assert events[0].payload["deep"] == [{"text": "from [REDACTED_NAME]"}]
    assert events[-1].event_type == "redaction"
    assert events[0].metadata["cwd"] == "/home/from [REDACTED_NAME]"
    assert NAME not in str(texts.of[S1])
    assert len(texts.of[S1]) == 2
    assert NAME in str(await app.events.find(EventFilter(session_id="s2")))


async def test_what_comes_again_is_known_and_brings_nothing_back(
    app: Penstock, texts: Texts
) -> None:
    await fill(app)
    await redact_session(app, S1, without, [TOLD])
    assert not (await app.events.append(told_of("s1", 1))).created
    assert NAME not in str(await app.events.get("s1-1"))


async def test_no_rebuild_brings_it_back(app: Penstock, texts: Texts) -> None:
    await fill(app)
    await catch_up(app)
    await redact_session(app, S1, without, [TOLD])
    await app.events.pipeline.rebuild("texts")
    assert NAME not in str(texts.of[S1])


async def test_what_else_holds_it_changes_in_the_same_commit(app: Penstock) -> None:
    await fill(app)

    def fails(tx: Any) -> None:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        await redact_session(app, S1, without, [TOLD], fails)
    assert NAME in str(await app.events.get("s1-1"))


async def test_it_is_gone_from_the_archive_too(
    app: Penstock, texts: Texts, clock: FakeClock
) -> None:
    await fill(app)
    await catch_up(app)
    clock.advance(seconds=90 * DAY // 1000)
    assert await app.events.archive(before=clock.now())
    assert await redact_session(app, S1, without, [TOLD]) == 1
    answer = await app.events.query("SELECT session_id, payload, cwd FROM events ORDER BY sequence")
    found = str([row for row in answer.rows if row[0] == "s1"])
    assert NAME not in found
    assert NAME in str(answer.rows)
    assert NAME not in str(texts.of[S1])
