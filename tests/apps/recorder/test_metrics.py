"""Figures of sessions are made exactly as they are defined."""

from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import metrics
from penstock.apps.recorder.changes import Change, changes_of, takes_back_by_git
from penstock.apps.recorder.decisions import Decisions
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.metrics import productivity
from penstock.apps.recorder.prices import cost, price_of
from penstock.apps.recorder.reconstruction import Reconstruction
from penstock.apps.recorder.state import Figures, State
from penstock.apps.recorder.writing import write
from penstock.events import catch_up
from penstock.events.event import Event
from penstock.testing import FakeClock
from tests.apps.recorder import goldens

SECOND = 1_000
MINUTE = 60 * SECOND


def changed(decisions: Decisions, at: int, path: str = "a.py", turn: int = 1, **texts: str) -> None:
    """Change a file."""
    before, after = texts.get("before", "old"), texts.get("after", f"new {at}")
    decisions.add(Change(path, "edit", 1, 1, before, after), turn, None, at)


def decided(state: State) -> tuple[int, int, int, int]:
    figures = state.figures
    return figures.direct, figures.rejected, figures.partial, figures.iterations


def test_what_is_left_alone_for_thirty_seconds_is_accepted() -> None:
    state = State()
    decisions = Decisions(state)
    changed(decisions, 0)
    decisions.settle(30 * SECOND - 1)
    assert state.figures.decisions == 0
    decisions.settle(30 * SECOND)
    assert decided(state) == (1, 0, 0, 0)
    assert decisions.changed[1].decision == "accepted"


def test_what_is_undone_within_thirty_seconds_is_rejected() -> None:
    state = State()
    decisions = Decisions(state)
    changed(decisions, 0, before="a", after="b")
    changed(decisions, 30 * SECOND, before="b", after="a")
    decisions.settle(10 * MINUTE)
    assert decided(state) == (0, 1, 0, 1), "and what undoes it is nothing to decide about"


def test_what_is_undone_later_was_accepted() -> None:
    state = State()
    decisions = Decisions(state)
    changed(decisions, 0, before="a", after="b")
    decisions.settle(31 * SECOND)
    changed(decisions, 31 * SECOND, before="b", after="a")
    assert decided(state)[:2] == (1, 0)


def test_what_is_changed_in_a_later_turn_was_kept_in_part() -> None:
    state = State()
    decisions = Decisions(state)
    changed(decisions, 0, turn=1)
    changed(decisions, MINUTE, turn=1)
    assert state.figures.partial == 0, "within a turn, an assistant goes on with its own work"
    changed(decisions, 2 * MINUTE, turn=2)
    assert state.figures.partial == 2
    assert state.figures.decisions == 2, "each is decided once, though it was accepted before"


def test_the_same_file_within_five_minutes_is_an_iteration() -> None:
    state = State()
    decisions = Decisions(state)
    for at in (0, 5 * MINUTE, 10 * MINUTE + 1):
        decisions.settle(at)
        changed(decisions, at)
    changed(decisions, 10 * MINUTE + 2, path="b.py")
    assert state.figures.iterations == 0, "one that is settled is no more looked at"
    changed(decisions, 10 * MINUTE + 3)
    assert state.figures.iterations == 1


def test_somebody_else_who_changes_a_file_keeps_a_part() -> None:
    state = State()
    decisions = Decisions(state)
    changed(decisions, 0)
    decisions.touched("b.py")
    assert state.figures.decisions == 0
    decisions.touched("a.py")
    assert decided(state) == (0, 0, 1, 0)


def test_the_rate_is_that_of_the_last_hundred() -> None:
    state = State()
    decisions = Decisions(state)
    for _ in range(150):
        decisions.denied()
    for n in range(60):
        changed(decisions, n, path=f"{n}.py")
    decisions.end()
    assert len(state.figures.window) == 100
    assert sum(state.figures.window) == 60


@pytest.mark.parametrize(
    ("command", "undoes"),
    [
        ("git checkout -- src/a.py", True),
        ("git restore src/a.py", True),
        ("git restore .", True),
        ("git reset --hard HEAD", True),
        ("git stash", True),
        ("rm src/a.py", True),
        ("git stash list", False),
        ("git checkout main", False),
        ("git checkout -- src/b.py", False),
        ("git reset src/a.py", False),
        ("cat src/a.py", False),
        ('git commit -m "restore src/a.py', False),
    ],
)
def test_commands_that_throw_a_change_away_are_known(command: str, undoes: bool) -> None:
    assert takes_back_by_git(command, "/work/src/a.py") is undoes


@pytest.mark.parametrize(
    ("tool", "asked", "found"),
    [
        ("Write", {"file_path": "a", "content": "1\n2\n"}, [("a", "write", 2, 0)]),
        ("Edit", {"file_path": "a", "old_string": "1\n2", "new_string": ""}, [("a", "edit", 0, 2)]),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2\n3"}] * 2},
            [("a", "edit", 4, 2)],
        ),
        (
            "replace",
            {"file_path": "a", "old_string": "1", "new_string": "2"},
            [("a", "edit", 1, 1)],
        ),
        ("delete_file", {"target_file": "a"}, [("a", "delete", 0, 0)]),
        ("create", {"path": "a", "file_text": "1"}, [("a", "write", 1, 0)]),
        (
            "shell",
            {"command": ["apply_patch", "*** Begin Patch\n*** Delete File: a\n*** End Patch"]},
            [("a", "delete", 0, 0)],
        ),
        ("Read", {"file_path": "a"}, []),
        ("Bash", {"command": "echo 1 > a"}, []),
        ("TodoWrite", {"todos": []}, []),
    ],
)
def test_tools_of_all_assistants_tell_what_they_change(
    tool: str, asked: dict[str, Any], found: list[tuple[Any, ...]]
) -> None:
    assert [change[:4] for change in changes_of(tool, asked)] == found


def test_a_prompt_says_by_its_gap_what_somebody_thinks() -> None:
    conversation = Reconstruction(State())
    at = 0
    for n, gap in enumerate((0, 5, 10, 30, 31)):
        at += gap * SECOND
        conversation.apply(_hook(2 * n, at, "UserPromptSubmit", prompt="Go."))
        conversation.apply(_hook(2 * n + 1, at, "Stop"))
    assert conversation.state.figures.gaps == {"iterating": 1, "reviewing": 2, "accepted": 1}


def _hook(n: int, at: int, hook: str, **payload: Any) -> Event:
    return Event(
        sequence=n,
        event_id=str(n),
        timestamp=goldens.NOON + at,
        ingested_at=0,
        event_type="trace",
        session_id="s1",
        platform="claude_code",
        tenant_id="",
        person=None,
        slot=0,
        priority=3,
        hook_type=hook,
        payload=payload,
        metadata={},
    )


def test_productivity_stays_within_its_bounds() -> None:
    assert productivity(State()) == 50
    best = State(tools=10, complete_at=1, figures=Figures(accepted=500))
    assert productivity(best) == 50 + 25 + 10 + 10
    worst = State(tools=10, failures=10)
    assert productivity(worst) == 50 - 15
    mixed = State(tools=10, failures=2, interruptions=3, figures=Figures(accepted=4))
    assert productivity(mixed) == 50 + 12.5 - 3 + 4


def test_a_price_is_that_of_the_longest_name_that_fits() -> None:
    assert price_of("claude-opus-4-6-20260101") == price_of("anthropic/claude-opus-4-6")
    older, newer = price_of("claude-opus-4-1"), price_of("us.anthropic.claude-opus-4-5-v1:0")
    assert older is not None
    assert newer is not None
    assert older.input == 3 * newer.input
    assert price_of("a-model-of-tomorrow") is None
    assert cost(None, given=5) is None
    million = {"given": 10**6, "output": 10**6, "cache_write": 10**6, "cache_read": 10**6}
    assert cost("claude-sonnet-4-6", **million) == pytest.approx(3 + 15 + 3.75 + 0.3)
    assert cost("claude-sonnet-4-6", cache_write=10**6, cache_write_1h=10**6) == 6


async def test_series_tell_of_latencies_and_decisions(tmp_path: Any) -> None:
    clock = FakeClock(goldens.NOON + 100_000)
    url = f"sqlite:///{tmp_path}/work.db"
    async with Penstock(url, extensions=[recorder], clock=clock) as app:
        golden = goldens.load(goldens.FOLDER / "claude_code.json")
        await write(app, list(goldens.captured(golden)))
        await catch_up(app, metrics.NAME)
        tools = {each.labels["tool"]: each for each in await app.series.read("recorder.tool_ms")}
        assert tools["Bash"].total == 2_500
        assert tools["Edit"].count == 2
        [kept] = await app.series.read("recorder.kept")
        assert (kept.count, kept.total) == (3, 1)
        [interrupted] = await app.series.read("recorder.interruptions")
        assert interrupted.total == 1
        await app.events.pipeline.rebuild(metrics.NAME)
        [again] = await app.series.read("recorder.kept")
        assert again == kept, "a rebuild counts nothing twice"
