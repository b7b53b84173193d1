from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from penstock import __version__
from penstock.cli import app, output
from penstock.cli.root import hoisted
from tools.commands import children_of

from .conftest import Cli

COMMANDS = (
    *("up", "server", "tokens", "users", "audit"),
    *("worker", "enqueue", "jobs", "dead", "workers", "stats", "doctor"),
    *("migrate", "backup", "restore", "demo", "torture", "version"),
)


def test_help_lists_every_command(cli: Cli) -> None:
    answer = cli("--help")
    assert answer.code == 0
    assert all(name in answer.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(cli: Cli, name: str) -> None:
    assert cli(name, "--help").code == 0


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("penstock jo", "jobs"),
        ("penstock jobs exp", "explain"),
        ("penstock jobs ls --sta", "--status"),
        ("penstock jobs ls --status dead", "dead_letter"),
    ],
)
def test_the_shell_completes_commands_options_and_values(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, offered: str
) -> None:
    monkeypatch.setenv("_PENSTOCK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    assert cli().out.split() == [offered]


def test_a_group_without_a_command_says_what_is_missing(cli: Cli) -> None:
    answer = cli("queues")
    assert answer.code == 2
    assert answer.err.endswith("penstock: name a command of `penstock queues`.\n")


def test_global_options_may_stand_after_the_command() -> None:
    assert hoisted(["jobs", "ls", "--url", "x", "--debug", "--limit", "3"]) == [
        "--url",
        "x",
        "--debug",
        "jobs",
        "ls",
        "--limit",
        "3",
    ]
    assert hoisted(["jobs", "ls", "--url=x"]) == ["--url=x", "jobs", "ls"]
    assert hoisted(["enqueue", "--", "--url"]) == ["enqueue", "--", "--url"]


def test_the_version_is_said(cli: Cli) -> None:
    answer = cli("--version")
    assert (answer.code, answer.out) == (0, f"penstock {__version__}\n")


def test_in_help_a_flag_is_a_flag(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for words in ([], ["jobs"], ["jobs", "ls"], ["worker"], ["dead", "requeue"], ["outbox"]):
        answer = cli(*words, "--help")
        assert "--help" in answer.out
        assert "<bool>" not in answer.out


def test_the_shell_completes_the_groups_of_extensions_and_behind_global_options(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line, offered in (
        ("penstock alerts l", "ls"),
        ("penstock --url sqlite:///work.db jobs exp", "explain"),
        ("penstock queues l", "ls"),
    ):
        monkeypatch.setenv("_PENSTOCK_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        assert cli().out.split() == [offered], line


def test_an_option_that_takes_a_list_may_be_repeated() -> None:
    lists = [option for option in options(get_command(app)) if "," in (option.metavar or "")]
    assert {name for option in lists for name in option.opts} >= {"--queues", "--types", "--scopes"}
    assert [option.opts for option in lists if not option.multiple] == []


def options(command: Any) -> Iterator[Any]:
    """The options of a command and of those below it."""
    yield from (each for each in command.params if each.param_type_name == "option")
    for below in children_of(command).values():
        yield from options(below)


def test_the_url_is_taken_from_either_place(shopped: Cli) -> None:
    missing = "sqlite:///missing.db"
    assert shopped("--url", missing, "jobs", "ls").code == 2
    assert shopped("jobs", "ls", "--url", missing).code == 2


def test_an_unknown_command_is_one_sentence(cli: Cli) -> None:
    answer = cli("jbos")
    assert answer.code == 2
    assert answer.says("jbos", "See `penstock --help`") or answer.says("jbos", "; see `penstock")


def test_an_unknown_option_is_one_sentence(cli: Cli) -> None:
    answer = cli("jobs", "ls", "--colour")
    assert answer.code == 2
    assert answer.says("--colour", "`penstock jobs ls --help`")


def test_a_config_that_does_not_exist_is_one_sentence(cli: Cli) -> None:
    answer = cli("jobs", "ls", "--config", "none.toml")
    assert answer.code == 2
    assert answer.says("none.toml")


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("work.db", "such as sqlite:///work.db"),
        ("mysql://x/y", "starts with sqlite://"),
        ("sqlite:///:memory:", "name a file"),
        ("sqlite:///", "names a file"),
    ],
)
def test_a_wrong_url_is_one_sentence(cli: Cli, url: str, part: str) -> None:
    answer = cli("jobs", "ls", "--url", url)
    assert answer.code == 2
    assert answer.says(part)


def test_an_unforeseen_error_is_one_sentence_and_has_a_code_of_its_own(
    shopped: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise KeyError("oops")

    monkeypatch.setattr("penstock.cli.jobs.console", broken)
    answer = shopped("jobs", "ls")
    assert answer.code == 70
    assert answer.says("KeyError", "--debug")


def test_debug_shows_the_traceback(penstock: Cli) -> None:
    answer = penstock("jobs", "ls", "--debug", "--url", "sqlite:///missing.db")
    assert answer.code == 1
    assert "Traceback" in answer.err


def test_version_names_what_is_at_work(cli: Cli) -> None:
    assert cli("version").out.startswith("penstock ")
    assert {"penstock", "python", "sqlite", "apsw"} == cli("version", "--json").json.keys()


def test_text_from_outside_is_neither_markup_nor_a_terminal_command() -> None:
    assert output.plain("[red]x[/]\x1b[31m\ny") == "\\[red]x\\[/][31m y"


def test_a_sparkline_has_a_bar_per_value() -> None:
    assert output.sparkline([0, 1, 2, 4]) == "▁▂▄█"
