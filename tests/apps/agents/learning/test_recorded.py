"""Sessions of coding assistants are learned from if the settings say so, out of events alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.agents.learning.recorded import NAME, session_id_of
from penstock.apps.recorder.writing import write
from penstock.config import Settings
from penstock.events import catch_up
from penstock.events.consumer import UnknownConsumer
from penstock.events.event import Session
from penstock.testing import FakeClock, drain
from tests.apps.agents.learning.tasks import EMBEDDER
from tests.apps.agents.raw import rows
from tests.apps.recorder import goldens
from tests.support.places import find_place

SESSION = Session("north", "claude_code", "s1")


def made(url: str, clock: FakeClock, *, recorder: bool) -> Penstock:
    """An application that learns from recorded sessions, or does not."""
    own = {"embedder": EMBEDDER, "schedules": False, "learning": {"recorder": recorder}}
    return Penstock(
        url,
        extensions=["events", "recorder", "agents"],
        settings=Settings(extension={"agents": own}),
        clock=clock,
    )


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Penstock]:
    url = find_place(request.param, request).url
    async with made(url, FakeClock(goldens.NOON + 100_000), recorder=True) as app:
        yield app


async def tell(app: Penstock, event_type: str, hook: str = "", **payload: Any) -> None:
    """Append an event of the session, as the recorder does."""
    await app.events.append(
        event_type,
        session_id=SESSION.session_id,
        platform=SESSION.platform,
        tenant_id=SESSION.tenant_id,
        person="ada",
        hook_type=hook or None,
        payload=payload,
    )


async def test_prompts_tools_and_answers_become_a_session_to_learn_from(app: Penstock) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "pytest"}}
    await tell(app, "session_start", source="startup")
    await tell(app, "user_prompt", prompt="Make the tests pass")
    await tell(app, "tool_use", "PreToolUse", **call)
    await tell(app, "tool_use", "PostToolUseFailure", **call, error="exit code 1")
    await tell(app, "tool_use", "PostToolUse", **call, tool_response={"stdout": "2 passed"})
    await catch_up(app, NAME)
    await tell(app, "assistant_response", last_assistant_message="All tests pass")
    await tell(app, "user_prompt", prompt="Thanks, that works")
    await tell(app, "session_end", reason="exit")
    await catch_up(app, NAME)
    await drain(app)
    assert rows(
        app, "SELECT n, role, content, skill_id, succeeded FROM agents_turns ORDER BY n"
    ) == [
        (1, "user", "Make the tests pass", None, None),
        (2, "tool", "exit code 1", "Bash", 0),
        (3, "tool", '{"stdout":"2 passed"}', "Bash", 1),
        (4, "assistant", "All tests pass", None, None),
        (5, "user", "Thanks, that works", None, None),
    ]
    assert rows(app, "SELECT id, tenant_id, user_id, status, turns FROM agents_sessions") == [
        (session_id_of(SESSION), "north", "ada", "closed", 5)
    ]
    found = rows(app, "SELECT verdict, tenant_id, content FROM agents_trajectories")
    assert found == [("success", "north", "Make the tests pass (Bash)")]


async def test_a_rebuild_makes_the_same_and_enqueues_nothing(app: Penstock) -> None:
    await tell(app, "user_prompt", prompt="Make the tests pass")
    await tell(app, "session_end")
    await catch_up(app, NAME)
    consumer = app.consumer.get(NAME)
    assert consumer.digest is not None
    digest = consumer.digest
    before = await app.read(lambda tx: digest(tx, SESSION))
    await app.events.pipeline.rebuild(NAME)
    assert await app.read(lambda tx: digest(tx, SESSION)) == before
    assert rows(app, "SELECT count(*) FROM jobs WHERE type = 'trajectory-process'") == [(1,)]


@pytest.mark.parametrize(
    ("platform", "requests", "ends"),
    [
        ("claude_code", 3, [1, 1, 0, 1, 1, 1]),
        ("codex", 1, [1, 1]),
        ("copilot", 2, [0, 1, 1]),
        ("cursor", 2, [1, 1, 0]),
        ("gemini_cli", 1, [1, 1, 0]),
        ("antigravity", 0, [1, 0]),
        ("claude_followed", 2, []),
    ],
)
async def test_every_assistant_tells_what_was_asked_and_which_tools_worked(
    platform: str, requests: int, ends: list[int], tmp_path: Path
) -> None:
    golden = goldens.load(goldens.FOLDER / f"{platform}.json")
    clock = FakeClock(goldens.NOON + 100_000)
    async with made(f"sqlite:///{tmp_path}/work.db", clock, recorder=True) as app:
        for captured in goldens.captured(golden):
            await write(app, [captured])
        await catch_up(app, NAME)
        tools = "SELECT succeeded FROM agents_turns WHERE role = 'tool' ORDER BY session_id, n"
        assert [ended for (ended,) in rows(app, tools)] == ends
        asked = rows(app, "SELECT count(*) FROM agents_turns WHERE role = 'user'")
        assert asked == [(requests,)]
        kept = rows(app, "SELECT metadata FROM agents_sessions")
        assert golden["platform"] in [json.loads(row[0])["platform"] for row in kept]


async def test_what_is_imported_is_left_alone(tmp_path: Path) -> None:
    """Of a session with hooks and a transcript, everything would be there twice."""
    golden = goldens.load(goldens.FOLDER / "claude_transcript.json")
    clock = FakeClock(goldens.NOON + 100_000)
    async with made(f"sqlite:///{tmp_path}/work.db", clock, recorder=True) as app:
        await write(app, list(goldens.captured(golden)))
        await catch_up(app, NAME)
        assert await app.agents.sessions.list() == []


async def test_without_the_setting_there_is_no_such_consumer(tmp_path: Path) -> None:
    clock = FakeClock(goldens.NOON)
    async with made(f"sqlite:///{tmp_path}/work.db", clock, recorder=False) as app:
        with pytest.raises(UnknownConsumer, match=r"no consumer 'agents\.sessions'"):
            await catch_up(app, NAME)
