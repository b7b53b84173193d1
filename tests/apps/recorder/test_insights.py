"""What is worth knowing of a session is counted, or said by a model once."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import conversations, insights, summaries
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.models import Asked, Models, NotAnAnswer, Reply
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.records import Turn
from penstock.apps.recorder.writing import write
from penstock.events import catch_up
from penstock.testing import FakeClock
from tests.apps.recorder import goldens
from tests.apps.recorder.test_reading import told

NOW = goldens.NOON


class Model:
    """A model that says what a test wants."""

    model = "claude-haiku-4-5"

    def __init__(self, *said: Any) -> None:
        self.said = list(said)
        self.asked: list[Asked] = []

    async def ask(self, asked: Asked) -> Reply:
        """Answer, and remember what was asked."""
        self.asked.append(asked)
        return Reply(value=self.said.pop(0), input_tokens=100, output_tokens=10)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW + 100_000)


@pytest.fixture
async def app(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Penstock]:
    model = {"provider": "anthropic", "daily_dollars": 10}
    settings = Settings(
        url=f"sqlite:///{tmp_path}/work.db", extension={"recorder": {"model": model}}
    )
    async with Penstock(settings=settings, extensions=[recorder], clock=clock) as app:
        yield app


async def understood(app: Penstock, *captured: Any) -> Any:
    await write(app, list(captured))
    for name in (conversations.NAME, insights.NAME):
        await catch_up(app, name)
    return await Sessions(app).get(captured[0].session_id)


async def test_failures_that_look_alike_are_told_once(app: Penstock) -> None:
    hooks = [told("s1", "UserPromptSubmit", NOW, prompt="Go.")]
    for n in range(4):
        tool = {"tool_name": "Bash", "tool_input": {"command": f"run {n}"}, "tool_use_id": f"t{n}"}
        hooks.append(told("s1", "PreToolUse", NOW + 10 * n, **tool))
        error = f"Exit code 1\nline {n}" if n < 3 else "Something else"
        hooks.append(told("s1", "PostToolUseFailure", NOW + 10 * n + 5, **tool, error=error))
    found = (await understood(app, *hooks)).insights
    assert [(each.kind, each.title, each.text) for each in found if each.kind != "summary"] == [
        ("repeated_failure", "Bash failed 3 times alike", "Exit code 1")
    ]


async def test_a_file_that_is_changed_again_and_again_is_friction(app: Penstock) -> None:
    hooks = [told("s1", "UserPromptSubmit", NOW, prompt="Go.")]
    for n in range(4):
        edit = {"file_path": "a.py", "old_string": str(n), "new_string": str(n + 1)}
        tool = {"tool_name": "Edit", "tool_input": edit, "tool_use_id": f"t{n}"}
        hooks.append(told("s1", "PreToolUse", NOW + 10 * n, **tool))
        hooks.append(told("s1", "PostToolUse", NOW + 10 * n + 5, **tool))
    found = (await understood(app, *hooks)).insights
    assert ("Changed again and again", "a.py was changed 4 times.") in [
        (each.title, each.text) for each in found
    ]


SAID = {"kind": "summary", "title": "A parser", "text": "Empty lines are taken now."}


async def a_session(app: Penstock) -> Any:
    golden = goldens.load(goldens.FOLDER / "claude_code.json")
    return await understood(app, *goldens.captured(golden))


async def test_what_a_model_says_takes_the_place_of_what_was_counted(app: Penstock) -> None:
    view = await a_session(app)
    model = Model({"insights": [SAID]})
    done = await summaries.summarise(app, view.row.id, Models(app, model))
    assert done == {"insights": 1}
    [asked] = model.asked
    assert "Prompt: Make the parser take empty lines." in asked.text
    assert "- Bash pytest -q (failed): Exit code 1" in asked.text
    await catch_up(app, insights.NAME)
    found = (await Sessions(app).get(view.row.id)).insights
    told_by = {(each.kind, each.title): each.source for each in found}
    assert told_by["summary", "A parser"] == "claude-haiku-4-5"
    assert told_by["friction", "Denied"] == "heuristic", "of which it said nothing"
    assert sum(each.kind == "summary" for each in found) == 1

    await app.events.pipeline.rebuild(insights.NAME)
    again = (await Sessions(app).get(view.row.id)).insights
    assert again == found, "and no model was asked"
    assert len(model.asked) == 1


async def test_what_a_model_says_later_replaces_what_it_said_before(app: Penstock) -> None:
    view = await a_session(app)
    later = {**SAID, "title": "Another"}
    model = Model({"insights": [SAID]}, {"insights": [later]})
    for _ in range(2):
        await summaries.summarise(app, view.row.id, Models(app, model))
    await catch_up(app, insights.NAME)
    found = (await Sessions(app).get(view.row.id)).insights
    assert [each.title for each in found if each.kind == "summary"] == ["Another"]


@pytest.mark.parametrize(
    "said", [None, {"insights": [{"kind": "gossip", "title": "", "text": ""}]}, {"sorry": "no"}]
)
async def test_what_does_not_fit_is_no_answer(app: Penstock, said: Any) -> None:
    view = await a_session(app)
    with pytest.raises(NotAnAnswer):
        await summaries.summarise(app, view.row.id, Models(app, Model(said)))


async def test_a_model_is_asked_once_and_only_of_what_is_validated(
    app: Penstock, clock: FakeClock
) -> None:
    view = await a_session(app)
    assert await summaries.look(app) == 0, "its messages wait to be validated"
    store: Any = app.store
    sql = "UPDATE recorder_messages SET validated = '1'"
    await store.tables.db.write(lambda tx: tx.connection.execute(sql).fetchall())
    assert await summaries.look(app) == 1
    assert await summaries.look(app) == 0, "it was asked for"
    await summaries.summarise(app, view.row.id, Models(app, Model({"insights": [SAID]})))
    await catch_up(app, insights.NAME)
    clock.advance(60_000)
    assert await summaries.look(app) == 0


async def test_without_a_model_nobody_is_asked(tmp_path: Path) -> None:
    async with Penstock(f"sqlite:///{tmp_path}/other.db", extensions=[recorder]) as app:
        assert await summaries.look(app) == 0
        view = await a_session(app)
        done = await summaries.summarise(app, view.row.id)
        assert done["skipped"]


def test_a_long_session_is_told_by_its_ends() -> None:
    turns = [Turn(n=n, status="open", started_at=0, prompt=f"{n} " * 300) for n in range(200)]
    view: Any = SimpleNamespace(turns=turns, tools=[])
    text = summaries.told(view)
    assert len(text) < summaries.LONGEST + 10
    assert "Turn 0 " in text
    assert "Turn 199 " in text
