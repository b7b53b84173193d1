from pathlib import Path

import pytest

from penstock.cli import users

from .conftest import Cli

PASSWORD = "a long password"


def test_a_user_is_added_with_a_password_from_standard_input(cli: Cli, tmp_path: Path) -> None:
    added = cli("users", "add", "ada", stdin=f"{PASSWORD}\n")
    assert added.code == 0
    assert "admin" in added.out
    (known,) = cli("users", "ls", "--json").json
    assert (known["name"], known["scopes"], known["tenant_id"]) == ("ada", ["admin"], None)
    assert "password" not in known
    for file in (tmp_path / "work.db", tmp_path / "work.db-wal"):
        assert not file.exists() or PASSWORD.encode() not in file.read_bytes()


def test_at_a_terminal_the_password_is_asked_for_and_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, object] = {}

    def prompt(text: str, **how: object) -> str:
        asked.update(how, text=text)
        return PASSWORD

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", prompt)
    assert users.read_password() == PASSWORD
    assert asked == {"text": "Password", "hide_input": True, "confirmation_prompt": True}


def test_no_second_store_is_made_beside_the_one_that_was_not_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENSTOCK_URL")
    added = cli("users", "add", "ada", stdin=f"{PASSWORD}\n")
    assert added.code == 2
    assert added.says("no store at", "--url or PENSTOCK_URL")
    assert not (tmp_path / "penstock.db").exists()


def test_no_option_takes_a_password(cli: Cli) -> None:
    answer = cli("users", "add", "ada", "--password", PASSWORD)
    assert answer.code == 2
    assert answer.says("--password")


def test_a_user_gets_another_password_and_is_removed(cli: Cli) -> None:
    cli("users", "add", "ada", "--scopes", "read", "--tenant", "acme", stdin=f"{PASSWORD}\n")
    assert cli("users", "passwd", "ada", stdin="another long one\n").code == 0
    assert cli("users", "rm", "ada", "--yes").code == 0
    assert cli("users", "ls", "--json").json == []
    actions = [entry["action"] for entry in cli("audit", "ls", "--json").json]
    assert actions == ["user.remove", "user.password", "user.add"]


def test_a_taken_name_is_refused_and_the_refusal_is_on_record(cli: Cli) -> None:
    cli("users", "add", "ada", stdin=f"{PASSWORD}\n")
    answer = cli("users", "add", "ada", stdin=f"{PASSWORD}\n")
    assert answer.code == 2
    assert answer.says("nobody has yet")
    assert cli("audit", "ls", "--json").json[0]["action"] == "user.add.refused"


@pytest.mark.parametrize(
    ("words", "stdin", "code", "part"),
    [
        (("add", "ada"), "short\n", 2, "between 10 and"),
        (("add", "a da"), f"{PASSWORD}\n", 2, "letters, digits"),
        (("add", "ada", "--scopes", "god"), f"{PASSWORD}\n", 2, "one of: enqueue"),
        (("add", "ada"), "", 2, "No password was given"),
        (("passwd", "nobody"), f"{PASSWORD}\n", 3, "penstock users ls"),
        (("rm", "nobody", "--yes"), "", 3, "penstock users ls"),
        (("rm", "ada"), "", 2, "--yes"),
    ],
)
def test_wrong_input_is_one_sentence(
    shopped: Cli, words: tuple[str, ...], stdin: str, code: int, part: str
) -> None:
    answer = shopped("users", *words, stdin=stdin)
    assert answer.code == code
    assert answer.says(part)
    assert PASSWORD not in answer.err
