import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from penstock.cli.top.run import split
from penstock.cli.top.state import PANELS, Panel, Snapshot, State
from penstock.cli.top.view import HINTS, printed, screen
from penstock.model.controls import PauseScope
from tools.draw_top import NOW, PICTURE, dead, example, picture, queue, running

NOTHING = replace(
    example(), queues=[], workers=[], running=[], dead=[], pauses=[], completed=[(NOW, 0.0)]
)


def lines(snapshot: Snapshot, state: State, width: int, height: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    out.print(screen(snapshot, state, width, height))
    text = out.file
    assert isinstance(text, io.StringIO)
    return text.getvalue().rstrip("\n").split("\n")


def row(shown: list[str], word: str) -> str:
    return next(line for line in shown if word in line)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 24), (200, 60), (60, 14)])
@pytest.mark.parametrize("snapshot", [example(), NOTHING], ids=["busy", "empty"])
def test_a_frame_fills_the_terminal_exactly(snapshot: Snapshot, width: int, height: int) -> None:
    for state in (State(), State(help=True), State(asking="Really?"), State(panel=Panel.FAILURES)):
        shown = lines(snapshot, state, width, height)
        assert len(shown) == height
        assert max(map(len, shown)) <= width


def test_eighty_columns_show_everything_of_a_small_installation() -> None:
    shown = lines(example(), State(), 80, 24)
    assert [word for word in PANELS if any(line.startswith(word) for line in shown)] == [*PANELS]
    assert "68.2/s" in shown[0]
    assert "p95 412 ms" in shown[0]
    assert row(shown, "mail ").split()[-6:] == ["8", "0", "17", "0", "41", "s"]
    assert " ".join(row(shown, "web-1").split()) == "web-1 4117 running 8/8 71 % 143 MB 3 s ago all"
    assert "64 % page 640" in row(shown, "export     invoices")
    assert "CardDeclined" in row(shown, "charge")
    assert HINTS in shown[-1]


def test_more_room_shows_more_of_a_line() -> None:
    assert "…" in row(lines(example(), State(), 80, 24), "charge")
    assert "ending in 4242" in row(lines(example(), State(), 120, 24), "charge")


def test_on_a_wide_screen_workers_stand_beside_the_queues() -> None:
    shown = lines(example(), State(), 160, 24)
    assert "workers" in row(shown, "queues ")


def test_a_silent_worker_and_a_held_queue_say_so() -> None:
    shown = lines(example(), State(), 80, 24)
    assert "silent 47 s" in row(shown, "batch")
    assert "‖ thumbnails" in row(shown, "thumbnails")


def test_the_chosen_row_is_marked_and_scrolled_to() -> None:
    snapshot = replace(
        example(), queues=[queue(f"q{n:02}", queued=n, running=0) for n in range(40)]
    )
    state = State()
    assert row(lines(snapshot, state, 80, 24), "q00").startswith("▸")
    for _ in range(99):
        state.move(snapshot, 1)
    shown = lines(snapshot, state, 80, 24)
    assert row(shown, "q39").startswith("▸")
    assert not any("q00" in line for line in shown)
    assert "queues (40)" in row(shown, "queues")


def test_a_choice_stays_with_its_row_when_others_come_and_go() -> None:
    state = State(panel=Panel.FAILURES)
    before = example()
    state.move(before, 1)
    chosen = state.selected(before)
    after = replace(before, dead=[dead("late", 100, "x"), *before.dead])
    assert state.selected(after) == chosen
    gone = replace(before, dead=before.dead[:1])
    assert state.selected(gone) == before.dead[0].job_id


def test_an_empty_panel_has_no_choice_and_no_key_breaks_it() -> None:
    state = State()
    for panel in PANELS:
        state.move(NOTHING, 1)
        assert state.panel is panel
        assert state.selected(NOTHING) is None
        state.turn(1)
    assert state.panel is Panel.QUEUES
    state.turn(-1)
    assert state.panel is Panel.FAILURES


def test_text_from_outside_is_neither_markup_nor_a_command() -> None:
    evil = "[red]\x1b[2J\x07boo[/] \n second line"
    snapshot = replace(
        example(),
        queues=[queue(evil, queued=1, running=1)],
        running=[running(evil, evil, 10, 1.0, evil)],
        dead=[dead(evil, 10, evil)],
    )
    shown = "\n".join(lines(snapshot, State(), 200, 24))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert shown.count("[red]") >= 4


def test_the_rate_is_that_of_the_last_seconds_and_a_step_that_has_begun_is_scaled() -> None:
    snapshot = replace(example(), at=NOW // 10_000 * 10_000 + 5_000)
    step = snapshot.at - 5_000
    snapshot = replace(snapshot, completed=[(step - 10_000, 100.0), (step, 100.0)])
    assert snapshot.rates(3) == [0.0, 10.0, 20.0]
    assert snapshot.per_second == pytest.approx(200 / 15)


def test_a_pause_of_a_job_holds_no_queue() -> None:
    pause = replace(example().pauses[0], scope=PauseScope.JOB, name="mail")
    assert replace(example(), pauses=[pause]).paused_queues == set()


def test_paper_has_no_keys() -> None:
    out = Console(file=io.StringIO(), width=80)
    out.print(printed(example(), 80))
    assert isinstance(out.file, io.StringIO)
    assert "quit" not in out.file.getvalue()


def test_the_picture_in_the_docs_is_what_the_code_draws() -> None:
    assert picture() == PICTURE.read_text("utf-8")


def test_keys_typed_at_once_are_told_apart() -> None:
    assert split("j\x1b[Ap\t\x1b[Z\x1bq") == ["j", "\x1b[A", "p", "\t", "\x1b[Z", "\x1b", "q"]
