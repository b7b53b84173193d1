from pathlib import Path

import apsw
import pytest

from .conftest import Cli

APP = ("--app", "tests.cli.shop:app")
GREET = ("schedules", "add", "nightly", "greet", "--args", '{"name": "ada"}')
NIGHTLY = (*GREET, "--cron", "0 3 * * *", "--zone", "Europe/Berlin")


@pytest.fixture
def nightly(cli: Cli) -> Cli:
    assert cli(*NIGHTLY, "--max-runs", "9").code == 0
    return cli


def test_an_added_schedule_is_shown_with_its_next_five_runs_in_its_zone(cli: Cli) -> None:
    answer = cli(*NIGHTLY)
    assert answer.code == 0
    runs = [line for line in answer.out.splitlines() if "03:00:00 +0" in line]
    assert len(runs) == 5
    shown = cli("schedules", "show", "nightly", "--json").json
    assert len(shown["next_runs"]) == 5
    assert all("T03:00:00+0" in run for run in shown["next_runs"])
    assert (shown["type"], shown["zone"], shown["by_operator"]) == ("greet", "Europe/Berlin", True)
    assert shown["payload"] == {"name": "ada"}


def test_a_narrow_terminal_spares_columns_and_keeps_names_whole(
    nightly: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = nightly("schedules", "ls").out
    assert all(word in out for word in ("nightly", "greet", "0 3 * * *", "on"))
    assert "LAST" not in out
    assert "…" not in out


def test_arguments_are_checked_when_the_application_is_known(cli: Cli) -> None:
    assert "no store" in cli("schedules", "ls").err
    wrong = ("--args", '{"nome": "ada"}', "--every", "5m")
    answer = cli("schedules", "add", "x", "greet", *wrong, *APP)
    assert answer.code == 2
    assert answer.says("'nome'")


def test_an_application_gives_its_type_s_options(cli: Cli, tmp_path: Path) -> None:
    url = ("--url", f"sqlite:///{tmp_path}/work.db")
    made = cli(*GREET, "--every", "5m", *APP, *url, "--json").json
    assert made["options"] == {"priority": 3, "queue": "mail"}
    assert made["interval_ms"] == 300_000


def test_schedules_are_listed(nightly: Cli) -> None:
    out = nightly("schedules", "ls").out
    assert "nightly" in out
    assert "0 3 * * *" in out
    assert max(map(len, out.splitlines())) <= 100
    [only] = nightly("schedules", "ls", "--json").json
    assert (only["name"], only["max_runs"]) == ("nightly", 9)


def test_one_that_a_hand_edited_into_nonsense_hides_no_other(nightly: Cli, tmp_path: Path) -> None:
    nightly("schedules", "add", "other", "greet", "--every", "1h")
    connection = apsw.Connection(str(tmp_path / "work.db"))
    connection.execute("UPDATE job_schedules SET zone = 'Mars/Phobos' WHERE name = 'nightly'")
    connection.close()
    broken, sound = nightly("schedules", "ls", "--json").json
    assert (broken["next_runs"], len(sound["next_runs"])) == ([], 5)
    assert "Mars/Phobos" in nightly("schedules", "ls").out


def test_an_empty_store_says_how_to_add_one(cli: Cli) -> None:
    cli("migrate")
    assert "penstock schedules add" in cli("schedules", "ls").out


def test_a_pause_is_shown_and_ends_with_resume(nightly: Cli) -> None:
    assert "paused" in nightly("schedules", "pause", "nightly").out
    assert "No further runs: it is paused" in nightly("schedules", "show", "nightly").out
    assert nightly("schedules", "pause", "nightly", "--json").json["enabled"] is False
    resumed = nightly("schedules", "resume", "nightly", "--json").json
    assert resumed["enabled"] is True
    assert len(resumed["next_runs"]) == 5


def test_adding_it_again_changes_it(nightly: Cli) -> None:
    nightly(*GREET, "--every", "1h")
    [only] = nightly("schedules", "ls", "--json").json
    assert (only["kind"], only["expression"]) == ("interval", None)


def test_running_it_now_enqueues_one_job(nightly: Cli) -> None:
    job_id = nightly("schedules", "run", "nightly", "--json").json["id"]
    job = nightly("jobs", "show", job_id, "--json").json
    assert (job["type"], job["payload"]) == ("greet", {"name": "ada"})
    assert "Enqueued" in nightly("schedules", "run", "nightly").out


def test_removing_needs_a_yes(nightly: Cli) -> None:
    asked = nightly("schedules", "rm", "nightly")
    assert asked.code == 2
    assert asked.says("Remove the schedule nightly?", "--yes")
    assert nightly("schedules", "rm", "nightly", "--yes").out == "Removed nightly.\n"
    assert nightly("schedules", "ls", "--json").json == []


def test_a_time_without_an_offset_is_in_the_zone(cli: Cli) -> None:
    at = ("--at", "2040-07-01T12:00", "--zone", "Europe/Berlin")
    made = cli(*GREET, *at, "--json").json
    assert made["next_runs"] == ["2040-07-01T12:00:00+02:00"]
    assert made["starts_at"] == "2040-07-01T10:00:00.000Z"


@pytest.mark.parametrize("command", ["show", "pause", "resume", "rm", "run"])
def test_an_unknown_name_is_one_sentence_with_code_3(nightly: Cli, command: str) -> None:
    answer = nightly("schedules", command, "nigthly")
    assert answer.code == 3
    assert answer.says("'nigthly'", "nightly")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "one of cron, every and at"),
        (("--cron", "61 * * * *"), "0 to 59"),
        (("--cron", "0 0 31 2 *"), "a date that exists"),
        (("--cron", "* * * * *", "--zone", "Europe/Berlni"), "Europe/Berlin?"),
        (("--every", "soon"), "'soon'"),
        (("--every", "0"), "above 0"),
        (("--at", "tomorrow"), "'tomorrow'"),
        (("--at", "2020-01-01"), "after now"),
        (("--every", "5", "--end", "2020-01-01"), "first run"),
        (("--every", "5", "--misfire", "maybe"), "one of skip, one, all"),
        (("--every", "5", "--max-runs", "0"), "above 0"),
        (("--every", "5", "--args", "{"), "JSON"),
        (("--every", "5", "--args", "[]"), "object"),
        (("--every", "5", "--args", '{"name": "{{ user }}"}'), "tick.date"),
        (("--every", "5", "--priority", "11"), "'priority'"),
    ],
)
def test_wrong_input_is_one_sentence_and_adds_nothing(
    cli: Cli, words: tuple[str, ...], part: str
) -> None:
    cli("migrate")
    answer = cli(*GREET, *words)
    assert answer.code == 2
    assert answer.says(part)
    assert cli("schedules", "ls", "--json").json == []
