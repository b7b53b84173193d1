"""A session as a picture: what is where, and that pauses do not squeeze what happened."""

from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace

from penstock.apps.recorder.timeline import LANES, Lane, Scale, timeline_of
from tests.apps.recorder.sessions import NOON, a_change, a_commit, a_tool, a_turn, a_view

HOUR = 3_600


def lane(lanes: list[Lane], name: str) -> Lane:
    return next(each for each in lanes if each.name == name)


def test_a_pause_is_equally_narrow_however_long_it_was() -> None:
    turns = [a_turn(1, 0, 60), a_turn(2, HOUR, HOUR + 60), a_turn(3, 30 * HOUR, 30 * HOUR + 60)]
    drawn = timeline_of(a_view(turns), NOON)
    assert drawn is not None
    first, second = drawn.pauses
    assert first.width == second.width < 5
    assert (first.label, second.label) == ("59 min", "1 d 4 h")
    widths = {round(bar.width, 6) for bar in lane(drawn.lanes, "Turns").bars}
    assert len(widths) == 1, "turns of one length are drawn alike"


def test_a_short_wait_is_no_pause() -> None:
    drawn = timeline_of(a_view([a_turn(1, 0, 60), a_turn(2, 70, 120)]), NOON)
    assert drawn is not None
    assert drawn.pauses == []
    first, second = lane(drawn.lanes, "Turns").bars
    assert first.x + first.width == pytest.approx(50)
    assert second.x == pytest.approx(100 * 70 / 120)


def test_nothing_is_drawn_beyond_the_edges() -> None:
    chance = Random(7)
    for _ in range(50):
        starts = sorted(chance.randrange(90_000) for _ in range(chance.randint(1, 40)))
        turns = [a_turn(n, at, at + chance.randrange(400)) for n, at in enumerate(starts, 1)]
        tools = [
            a_tool(n, at, duration_ms=chance.randrange(400_000), name=chance.choice("abc"))
            for n, at in enumerate(starts, 1)
        ]
        drawn = timeline_of(a_view(turns, tools), NOON)
        assert drawn is not None
        bars = [bar for each in drawn.lanes for bar in each.bars]
        assert all(-0.001 <= bar.x <= bar.x + bar.width <= 100.001 for bar in bars)
        edges = [bar.x for bar in lane(drawn.lanes, "Turns").bars]
        assert edges == sorted(edges), "what came later is further right"


def test_tools_that_are_seldom_used_share_a_lane() -> None:
    often = [a_tool(n, n, name=f"tool-{n % LANES}") for n in range(4 * LANES)]
    seldom = [a_tool(100 + n, 90 + n, name=f"seldom-{n}") for n in range(5)]
    drawn = timeline_of(a_view([a_turn(1, 0, 100)], [*often, *seldom]), NOON)
    assert drawn is not None
    names = [each.name for each in drawn.lanes if each.kind == "tools"]
    assert names == [*(f"tool-{n}" for n in range(LANES)), "5 other tools"]
    assert lane(drawn.lanes, "5 other tools").note == "5"


def test_bars_that_would_run_into_each_other_are_one_that_says_how_many() -> None:
    tools = [a_tool(n, 0, started_at=NOON + 20 * n, duration_ms=10) for n in range(1, 31)]
    tools.append(a_tool(31, 1_800, duration_ms=60_000))
    drawn = timeline_of(a_view([a_turn(1, 0, 3_600)], tools), NOON)
    assert drawn is not None
    first, second = lane(drawn.lanes, "Bash").bars
    assert first.label == "Bash, 30 times"
    assert second.label == "Bash: make test, worked, 1 min"


def test_a_failure_stays_visible_among_what_is_merged() -> None:
    tools = [a_tool(n, 0, started_at=NOON + 20 * n, duration_ms=10) for n in range(1, 10)]
    tools[4] = a_tool(5, 0, started_at=NOON + 100, duration_ms=10, status="failed")
    drawn = timeline_of(a_view([a_turn(1, 0, 3_600)], tools), NOON)
    assert drawn is not None
    bars = lane(drawn.lanes, "Bash").bars
    assert [bar.colour for bar in bars] == ["in-wait", "in-bad", "in-wait"]
    assert lane(drawn.lanes, "Bash").note == "9, 1 failed"


def test_what_took_no_time_is_seen() -> None:
    denied = a_tool(1, 60, status="denied", duration_ms=None)
    drawn = timeline_of(a_view([a_turn(1, 0, 60)], [denied]), NOON)
    assert drawn is not None
    [bar] = lane(drawn.lanes, "Bash").bars
    assert bar.width > 0
    assert bar.x + bar.width <= 100


def test_changes_and_commits_have_lanes_of_their_own() -> None:
    view = a_view(
        [a_turn(1, 0, 60)],
        changes=[a_change(1, 10), a_change(2, 20, "rejected"), a_change(3, 30, None)],
        commits=[a_commit(50)],
    )
    drawn = timeline_of(view, NOON)
    assert drawn is not None
    changes = lane(drawn.lanes, "Changes")
    assert changes.note == "+9 −3"
    assert [dot.colour for dot in changes.dots] == ["in-good", "in-bad", "is-quiet"]
    assert lane(drawn.lanes, "Commits").dots[0].x == pytest.approx(100 * 50 / 60)


def test_what_goes_on_is_drawn_up_to_now() -> None:
    open_ = a_turn(1, 0, 60, status="open", ended_at=None)
    view = a_view([open_], [a_tool(1, 10, status="running", duration_ms=None)])
    live = replace(view, row=replace(view.row, ended_at=None))
    drawn = timeline_of(live, NOON + 100_000)
    assert drawn is not None
    assert lane(drawn.lanes, "Turns").bars[0].width == pytest.approx(100)
    assert lane(drawn.lanes, "Bash").bars[0].width == pytest.approx(90)


def test_a_session_in_which_nothing_happened_has_no_picture() -> None:
    assert timeline_of(a_view([]), NOON) is None


def test_marks_along_the_edge_leave_room_for_each_other() -> None:
    spans = [(NOON + n * HOUR * 1_000, NOON + n * HOUR * 1_000 + 60_000) for n in range(30)]
    marks = Scale(spans).marks()
    assert marks[0].label == "start"
    assert marks[-1].label == "+1 d 5 h"
    gaps = [b.x - a.x for a, b in pairwise(marks)]
    assert min(gaps) > 10
