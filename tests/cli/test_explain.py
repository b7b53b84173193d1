import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from penstock.cli import app as program
from penstock.operate import reasons
from tools.commands import children_of

from .conftest import Cli

REASONS = Path(reasons.__file__)


def enqueued(cli: Cli, *words: str) -> str:
    job_id: str = cli("enqueue", "greet", "--payload", '{"name":"ada"}', *words, "--json").json[
        "id"
    ]
    return job_id


def test_a_waiting_job_is_explained(cli: Cli) -> None:
    job_id = enqueued(cli, "--delay", "1h")
    answer = cli("jobs", "explain", job_id)
    assert answer.code == 0
    assert "greet" in answer.out
    assert "It is not due before" in answer.out
    assert "penstock worker module:app" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100


def test_an_explanation_for_scripts_names_every_reason(cli: Cli) -> None:
    job_id = enqueued(cli, "--delay", "1h")
    found = cli("jobs", "explain", job_id, "--json").json
    assert (found["job_id"], found["status"]) == (job_id, "pending")
    assert [reason["kind"] for reason in found["reasons"]] == ["waits_for_time", "no_worker"]
    assert found["summary"] == found["reasons"][0]["sentence"]
    assert found["reasons"][0]["until_at"].endswith("Z")
    assert found["asked_at"].endswith("Z")


def test_a_dead_job_leads_to_its_letter(shopped: Cli) -> None:
    job_id = shopped("dead", "ls", "--json").json[0]["job_id"]
    assert f"penstock dead show {job_id}" in " ".join(
        shopped("jobs", "explain", job_id).out.split()
    )


def test_text_from_outside_is_not_read_as_markup(cli: Cli) -> None:
    words = ("enqueue", "[red]x", "--payload", json.dumps({}), "--json")
    answer = cli("jobs", "explain", cli(*words).json["id"])
    assert "[red]x" in answer.out


def test_an_unknown_job_is_one_sentence_with_code_3(cli: Cli) -> None:
    enqueued(cli)
    answer = cli("jobs", "explain", "01NOPE")
    assert answer.code == 3
    assert answer.says("no job 01NOPE")


def commands() -> set[tuple[str, ...]]:
    """Every command there is: `("jobs", "explain")`, `("worker",)`."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        children = children_of(command)
        if not children:
            yield path
        for name, child in children.items():
            yield from walk(child, (*path, name))

    return set(walk(get_command(program), ()))


def test_what_a_reason_tells_to_type_is_a_command() -> None:
    told = re.findall(r"`penstock ([a-z-]+)(?: ([a-z-]+))?", REASONS.read_text("utf-8"))
    assert told
    known = commands()
    for words in told:
        assert words in known or words[:1] in known, f"penstock {' '.join(words)}"
