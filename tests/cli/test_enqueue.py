import asyncio
from pathlib import Path

import pytest

from penstock import JobFailed
from penstock.cli.enqueue import ended
from penstock.cli.root import complain
from penstock.cli.session import asked
from penstock.model.clock import iso
from penstock.model.job import OPTIONS
from tests.support.options import KEPT, SAMPLES, typed

from .conftest import Cli
from .test_queues import live

APP = ("--app", "tests.cli.shop:app")


def test_a_job_is_enqueued_and_the_new_store_is_named(cli: Cli, tmp_path: Path) -> None:
    answer = cli("enqueue", "greet", "--payload", '{"name": "ada"}')
    assert answer.code == 0
    assert "Enqueued" in answer.out
    assert "creating the store" in answer.err
    assert (tmp_path / "work.db").exists()


def test_options_reach_the_job(cli: Cli) -> None:
    words = ("--priority", "1", "--delay", "2h", "--key", "k", "--queue", "slow")
    made = cli("enqueue", "greet", *words, "--json").json
    job = cli("jobs", "show", made["id"], "--json").json
    assert (job["priority"], job["key"], job["queue"], job["status"]) == (1, "k", "slow", "pending")


def test_every_option_can_be_said(cli: Cli) -> None:
    flags = [f"--{name.replace('_', '-')}={typed(value)}" for name, value in SAMPLES.items()]
    made = cli("enqueue", "greet", *flags, "--json").json
    shown = cli("jobs", "show", made["id"], "--json").json
    for name, value in KEPT.items():
        stored = OPTIONS[name].stored(value)
        text = stored if name != "at" else iso(stored)
        expected = {"metadata": value, "tags": list(SAMPLES["tags"]), "key_scope": "window"}
        assert shown[OPTIONS[name].field] == expected.get(name, text), name


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--metadata", "{"), "Option 'metadata' is not JSON"),
        (("--metadata", "[1]"), "Option 'metadata' is [1], but it must be a mapping"),
        (("--at", "noon"), "Option 'at' is 'noon', but it must be a time"),
        (("--key-scope", "ever"), "Option 'key_scope' is 'ever', but it must be one of"),
        (("--timeout", "long"), "Option 'timeout' is 'long'"),
        (("--tags", ",".join("abcdefghijklmnopqrstuvwxyzabcdefgh")), "at most 32 words"),
    ],
)
def test_an_option_that_is_wrong_is_named(cli: Cli, words: tuple[str, ...], part: str) -> None:
    answer = cli("enqueue", "greet", *words)
    assert answer.code == 2
    assert answer.says(part)


def test_a_taken_key_answers_with_its_holder(cli: Cli) -> None:
    first = cli("enqueue", "greet", "--key", "k", "--json").json
    second = cli("enqueue", "greet", "--key", "k", "--json").json
    assert (first["created"], second["created"]) == (True, False)
    assert first["id"] == second["id"]
    assert "nothing new" in cli("enqueue", "greet", "--key", "k").out


def test_the_payload_may_come_from_a_file_or_standard_input(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"name": "ada"}')
    one = cli("enqueue", "greet", "--payload", "@p.json", "--json").json
    two = cli("enqueue", "greet", "--payload", "-", "--json", stdin='{"name": "grace"}')
    assert cli("jobs", "show", one["id"], "--json").json["payload"] == {"name": "ada"}
    shown = cli("jobs", "show", two.json["id"], "--json").json
    assert shown["payload"] == {"name": "grace"}


def test_with_an_application_the_type_gives_the_defaults(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    made = cli("enqueue", "greet", *APP, "--payload", '{"name": "a"}', "--url", url, "--json")
    assert (made.json["queue"], made.json["priority"]) == ("mail", 3)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("greet", "--payload", "{"), "is not JSON"),
        (("greet", "--payload", "\ud800"), "is not JSON"),
        (("greet", "--payload", '{"name": NaN}'), "is not JSON"),
        (("greet", "--payload", "[1]"), "must be an object"),
        (("greet", "--payload", "@none.json"), "cannot be read"),
        (("greet", "--priority", "0"), "from 1 to 10"),
        (("greet", "--priority", "11"), "from 1 to 10"),
        (("greet", "--priority", "high"), "--priority"),
        (("greet", "--delay", "soon"), "such as 90s"),
        (("greet", "--key", "k" * 300), "1 to 255 characters"),
        (("greet", "--queue", "a b"), "Option 'queue'"),
        (("two words",), "A job type is a name"),
        (("greet", *APP, "--payload", '{"name": 3}'), "expected str, got int"),
        (("greet", *APP, "--payload", "{}"), "'name'"),
        (("unknown", *APP), "known types are doomed, greet, later"),
        (("greet", "--app", "none.here:app"), "importable"),
        (("greet", "--app", "tests.cli.shop:build"), "module:name of a Penstock application"),
    ],
)
def test_wrong_input_is_one_sentence_and_makes_no_store(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], part: str
) -> None:
    answer = cli("enqueue", *words)
    assert answer.code == 2
    assert answer.says(part)
    assert not list(tmp_path.glob("*.db"))


def test_a_payload_over_the_limit_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PAYLOAD_LIMIT", "10")
    answer = cli("enqueue", "greet", "--payload", '{"name": "a long name"}')
    assert answer.code == 2
    assert answer.says("over the limit")


def test_a_module_that_raises_when_imported_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    answer = cli("enqueue", "greet", "--app", "broken_module:app")
    assert answer.code == 2
    assert answer.says("ZeroDivisionError", "--debug")


def test_waiting_for_a_job_that_nobody_runs_ends_with_code_1(cli: Cli) -> None:
    answer = cli("enqueue", "greet", "--key", "k", "--wait", "50ms")
    assert answer.code == 1
    assert "has no result after" in answer.err


def test_a_job_that_is_waited_for_and_dies_is_code_1(shopped: Cli, tmp_path: Path) -> None:
    job_id = shopped("jobs", "ls", "--type", "doomed", "--json").json[0]["id"]
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with pytest.raises(JobFailed, match="can never be done") as error:
        asyncio.run(asked(url, lambda store: ended(store, job_id, 5)))
    assert complain(error.value) == 1


def test_a_type_that_nobody_knows_is_warned_about(cli: Cli, tmp_path: Path) -> None:
    first = cli("enqueue", "gret", "--json")
    assert "nobody declares the job type 'gret'" in first.err
    assert "no worker is alive" in first.err
    assert first.json["type"] == "gret"
    again = cli("enqueue", "gret")
    assert again.err == ""

    live(tmp_path, types=("greet", "resize"), declared_queues=("mail",))
    answer = cli("enqueue", "gret")
    assert answer.code == 0
    assert answer.says("no live worker knows it; did you mean 'greet'?")
    assert cli("enqueue", "greet", "--queue", "mail").err == ""


def test_a_queue_that_no_live_worker_uses_is_warned_about(cli: Cli, tmp_path: Path) -> None:
    cli("enqueue", "greet")
    live(tmp_path, types=("greet",), declared_queues=("mail",))
    assert "no live worker uses queue 'default'; `--app MODULE:APP`" in cli("enqueue", "greet").err
