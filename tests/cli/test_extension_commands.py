"""`penstock NAME …`: a command for every function an extension declares."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ENVIRONMENT, Cli
from tests.support import garden


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    places = "tests.support.garden:garden,tests.support.garden:needy"
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", places)
    garden.watered.clear()


def test_help_lists_its_group_in_a_panel_of_extensions(cli: Cli) -> None:
    shown = cli("--help").out
    panel = shown.partition("Extensions")[2]
    assert "garden" in panel
    assert "Beds and what grows in them." in panel


def test_help_does_without_an_extension_that_cannot_be_loaded(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "no_such_module:x")
    assert "enqueue" in cli("--help").out
    assert cli("garden").says("no_such_module:x")


def test_its_commands_are_listed_with_what_their_docstrings_say(cli: Cli) -> None:
    shown = cli("garden", "--help").out
    assert "List the beds." in shown
    assert "Plant a bed." in shown


def test_options_and_arguments_are_those_of_the_function(cli: Cli) -> None:
    beds, plant = cli("garden", "beds", "--help").out, cli("garden", "plant", "--help").out
    assert "--plants" in beds
    assert "At least so many plants." in beds
    assert "--all" in beds
    assert "--json" in beds
    assert "NAME" in plant
    assert "Which bed." in plant
    assert "actor" not in plant.lower()


def test_records_are_printed_as_a_table_without_markup_of_their_own(cli: Cli) -> None:
    cli("migrate")
    head, row, other = [
        line.split() for line in cli("garden", "beds", "--all").out.splitlines() if "─" not in line
    ]
    assert head == ["NAME", "STATE", "PLANTS", "SAID"]
    assert row == ["rose", "failed", "1,200", "[red]thorns"]
    assert other == ["bare", "paused", "0"]


def test_the_same_as_json(cli: Cli) -> None:
    cli("migrate")
    [row] = cli("garden", "beds", "--json").json
    assert (row["name"], row["plants"]) == ("rose", 1200)
    assert cli("garden", "beds", "--plants", "9999", "--json").json == []
    assert cli("garden", "beds", "--plants", "9999").out == "There is none.\n"


def test_a_record_is_printed_line_by_line_and_its_jobs_are_known(cli: Cli) -> None:
    answer = cli("garden", "plant", "rose")
    assert answer.code == 0, answer.err
    assert [line.split() for line in answer.out.splitlines()] == [["name", "rose"], ["plants", "1"]]
    assert garden.watered == ["cli planted rose"]
    [job] = cli("jobs", "ls", "--json").json
    assert job["type"] == "garden.water"


def test_what_people_see_may_differ_and_a_failure_is_a_sentence(cli: Cli) -> None:
    cli("migrate")
    answer = cli("garden", "inspect")
    assert answer.code == 1
    assert answer.err == "penstock: One bed is dry.\n"
    assert answer.out.startswith("All is green.\nBED")
    assert cli("garden", "inspect", "--json").json == {"green": True}


def test_an_error_of_ours_is_one_sentence_with_its_exit_code(cli: Cli) -> None:
    answer = cli("garden", "plant", "moor")
    assert answer.code == 3
    assert answer.says("There is no bed 'moor'.")


def test_a_store_is_made_only_by_a_command_that_writes(cli: Cli) -> None:
    assert cli("garden", "beds").says("There is no store at")
    assert cli("garden", "plant", "rose").code == 0
    assert cli("garden", "beds").code == 0


def test_what_is_missing_is_named_by_its_extra(cli: Cli) -> None:
    assert "needy" in cli("--help").out
    answer = cli("needy", "look")
    assert answer.code == 2
    assert answer.says("penstock[server]", "no_such_module_here")


def test_an_unknown_command_is_still_refused(cli: Cli) -> None:
    assert cli("gardn").says("No such command 'gardn'")
    assert cli("garden", "weed").says("No such command 'weed'")


def test_a_command_of_ours_looks_for_no_extension() -> None:
    code = (
        "import sys; from penstock.cli import main\n"
        "sys.argv = ['penstock', 'version']\n"
        "try: main()\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT | {"PENSTOCK_EXTENSIONS": "no_such_module:x"},
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"penstock.app.extensions", "penstock.extension"}


def test_the_doctor_and_health_look_at_extensions_too(cli: Cli) -> None:
    cli("migrate")
    told = {check["name"]: check for check in cli("doctor", "--json").json["checks"]}
    assert told["garden: tools"]["level"] == "wrong"
    assert told["garden: soil"] == {
        "name": "garden: soil",
        "level": "warning",
        "detail": "The soil is dry.",
    }
    checks = cli("health", "--json").json["checks"]
    assert checks["garden.soil"]["status"] == "degraded"
    assert "garden.tools" not in checks


def test_further_groups_are_listed_and_called_by_their_own_name(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "tests.support.garden:shed")
    assert "Spades alone." in cli("--help").out
    cli("migrate")
    assert cli("spades", "where").out == f"sqlite:///{tmp_path}/work.db\n"


def test_commands_use_the_home_of_their_extension_where_nobody_names_a_store(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "tests.support.garden:shed")
    monkeypatch.setenv("SHED", f"sqlite:///{tmp_path}/shed.db")
    assert cli("shed", "where").out == f"sqlite:///{tmp_path}/work.db\n"  # that was named
    monkeypatch.delenv("PENSTOCK_URL")
    assert cli("shed", "where").out == f"sqlite:///{tmp_path}/shed.db\n"
    assert (tmp_path / "shed.db").exists()
    assert cli("shed", "where", "--url", "sqlite:///mine.db").out == "sqlite:///mine.db\n"
