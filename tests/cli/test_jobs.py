import asyncio
import re
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.store.contract import Claim
from penstock.store.open import open_store
from penstock.testing import drain
from tests.support.options import TEXTS

from .conftest import Cli

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def first(cli: Cli, type_name: str) -> str:
    job_id: str = cli("jobs", "ls", "--type", type_name, "--json").json[0]["id"]
    return job_id


def test_jobs_are_listed_with_complete_ids_in_100_columns(shopped: Cli) -> None:
    answer = shopped("jobs", "ls")
    listed = shopped("jobs", "ls", "--json").json
    assert len(listed) == 6
    assert all(job["id"] in answer.out and job["status"] in answer.out for job in listed)
    assert max(map(len, answer.out.splitlines())) <= 100


def test_attempts_are_listed_as_numbers_and_delays_shown_as_spans(shopped: Cli) -> None:
    rows = shopped("jobs", "ls").out.splitlines()[1:]
    assert not [row for row in rows if re.search(r"\d/\d", row)]
    shown = shopped("jobs", "show", first(shopped, "later")).out
    assert re.search(r"retry delay +1 h +\n", shown)


def test_a_job_that_runs_is_at_its_first_attempt(cli: Cli, tmp_path: Path) -> None:
    cli("enqueue", "greet", "--payload", '{"name": "ada"}')
    asyncio.run(_claim(f"sqlite:///{tmp_path / 'work.db'}"))
    assert re.search(r"in_progress +1 ", cli("jobs", "ls").out)
    assert re.search(r"attempts +1, running now", cli("jobs", "show", first(cli, "greet")).out)


def test_filters_and_pages(shopped: Cli) -> None:
    dead = shopped("jobs", "ls", "--status", "dead_letter", "--json").json
    assert {job["type"] for job in dead} == {"doomed"}
    page = shopped("jobs", "ls", "--limit", "4", "--json").json
    rest = shopped("jobs", "ls", "--before", page[-1]["id"], "--json").json
    assert (len(page), len(rest)) == (4, 2)
    assert f"--before {page[-1]['id']}" in shopped("jobs", "ls", "--limit", "4").out


@pytest.mark.parametrize(
    ("words", "types"),
    [
        (["--payload", "name=alan"], {"greet"}),
        (["--payload", "name=nobody"], set()),
        (["--text", "ALAN"], {"greet"}),
        (["--category", "nowhere"], set()),
        (["--tenant", "acme"], set()),
        (["--workspace", "acme"], set()),
        (["--created-by", "acme"], set()),
        (["--schedule", "nightly"], set()),
        (["--worker", "nobody"], set()),
        (["--type", "greet", "--since", "2020-01-01T00:00"], {"greet"}),
        (["--since", "2999-01-01T00:00"], set()),
        (["--type", "greet", "--until", "2020-01-01T00:00+01:00"], set()),
    ],
)
def test_filters_are_those_of_the_api(shopped: Cli, words: list[str], types: set[str]) -> None:
    assert {job["type"] for job in shopped("jobs", "ls", *words, "--json").json} == types
    assert types or "No job matches" in shopped("jobs", "ls", *words).out


def test_a_time_that_is_none_is_refused(shopped: Cli) -> None:
    refused = shopped("jobs", "ls", "--since", "yesterday")
    assert (refused.code, "must be a time such as" in refused.err) == (2, True)


def test_json_has_iso_times_and_decoded_documents(shopped: Cli) -> None:
    job = shopped("jobs", "show", first(shopped, "greet"), "--json").json
    assert job["payload"] == {"name": "alan"}
    assert job["result"] == "hello alan"
    assert ISO.fullmatch(job["created_at"])
    assert ISO.fullmatch(job["completed_at"])
    assert [run["status"] for run in job["executions"]] == ["completed"]
    assert ISO.fullmatch(job["executions"][0]["started_at"])


def test_a_job_is_shown_with_its_executions(shopped: Cli) -> None:
    out = shopped("jobs", "show", first(shopped, "later")).out
    assert "failed" in out
    assert "EXECUTION" in out
    assert "not yet" in out


def test_a_job_that_will_be_retried_is_shown_with_its_last_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    async def work() -> None:
        app = Penstock(f"sqlite:///{Path.cwd()}/work.db")

        @app.job(retry_delay=3600)
        async def ship() -> None:
            orders: dict[str, str] = {}
            orders["customer"]

        async with app:
            await ship.enqueue()
            await drain(app)

    asyncio.run(work())
    [job] = cli("jobs", "ls", "--json").json
    assert job["status"] == "failed"
    shown = cli("jobs", "show", job["id"]).out
    assert "traceback of the last failed execution" in shown
    assert 'orders["customer"]' in shown
    assert "of penstock" in shown
    for words in (["ls"], ["show", job["id"]], ["explain", job["id"]]):
        assert "KeyError: 'customer'" in cli("jobs", *words).out


def test_the_lines_a_job_logged(shopped: Cli) -> None:
    job_id = first(shopped, "greet")
    assert "greeting alan" in shopped("jobs", "logs", job_id).out
    assert shopped("jobs", "logs", job_id, "--json").json[0]["message"] == "greeting alan"
    assert "greeting alan" in shopped("jobs", "logs", job_id, "--follow").out
    assert "Nothing was logged" in shopped("jobs", "logs", first(shopped, "doomed")).out


def test_a_waiting_job_is_cancelled_and_requeued(shopped: Cli) -> None:
    job_id = first(shopped, "later")
    assert "cancelled" in shopped("jobs", "cancel", job_id).out
    assert shopped("jobs", "show", job_id, "--json").json["error"] == "cancelled by an operator"
    assert shopped("jobs", "requeue", job_id, "--json").json == {"requeued": [job_id]}
    assert shopped("jobs", "show", job_id, "--json").json["status"] == "pending"


def test_a_job_is_shown_with_every_text_that_it_was_given(cli: Cli) -> None:
    flags = [f"--{name.replace('_', '-')}={text}" for name, text in TEXTS.items()]
    made = cli("enqueue", "greet", *flags, "--json").json
    out = cli("jobs", "show", made["id"]).out
    assert [name for name, text in TEXTS.items() if text not in out] == []


def test_a_running_job_that_was_cancelled_is_shown_as_asked_to_stop(
    shopped: Cli, tmp_path: Path
) -> None:
    shopped("enqueue", "greet", "--payload", '{"name": "bob"}')
    job_id = first(shopped, "greet")
    asyncio.run(_claim(f"sqlite:///{tmp_path / 'work.db'}"))
    assert "Stop it: penstock jobs cancel" in shopped("jobs", "show", job_id).out
    shopped("jobs", "cancel", job_id)
    shown = shopped("jobs", "show", job_id).out
    assert "It was asked to stop" in shown
    assert "jobs cancel" not in shown


async def _claim(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.jobs.claim(
        Claim(owner="host:1", types=("greet",), limit=1, start=1, lease_ms=60_000)
    )
    await store.close()


def test_cancelling_what_has_ended_says_so_and_ends_with_code_1(shopped: Cli) -> None:
    answer = shopped("jobs", "cancel", first(shopped, "greet"))
    assert answer.code == 1
    assert "had already ended as completed" in answer.out


def test_a_completed_job_is_not_requeued(shopped: Cli) -> None:
    answer = shopped("jobs", "requeue", first(shopped, "greet"))
    assert answer.code == 2
    assert answer.says("completed", "requeue")


@pytest.mark.parametrize("words", [("show",), ("logs",), ("logs", "-f"), ("cancel",), ("requeue",)])
def test_an_unknown_id_is_one_sentence_with_code_3(shopped: Cli, words: tuple[str, ...]) -> None:
    answer = shopped("jobs", *words, "01NOPE")
    assert answer.code == 3
    assert answer.says("01NOPE")


@pytest.mark.parametrize("words", [("--status", "sleeping"), ("--limit", "0"), ("--limit", "many")])
def test_a_wrong_filter_is_one_sentence(shopped: Cli, words: tuple[str, ...]) -> None:
    answer = shopped("jobs", "ls", *words)
    assert answer.code == 2
    assert answer.says(words[0])


def test_looking_at_a_store_that_does_not_exist_does_not_make_it(cli: Cli, tmp_path: Path) -> None:
    answer = cli("jobs", "ls")
    assert answer.code == 2
    assert answer.says("There is no store at", "penstock migrate")
    assert not list(tmp_path.glob("*"))


def test_an_empty_store_says_what_to_do_next(cli: Cli) -> None:
    cli("migrate")
    assert "penstock enqueue" in cli("jobs", "ls").out
    assert cli("jobs", "ls", "--json").json == []
    assert "take a filter away" in cli("jobs", "ls", "--queue", "mail").out


def test_a_finished_job_is_run_again_and_both_name_the_other(shopped: Cli) -> None:
    before = shopped("jobs", "ls", "--type", "greet", "--json").json[0]["id"]
    answer = shopped("jobs", "run-again", before)
    assert answer.code == 0
    after = answer.out.split()[-1].rstrip(".")
    assert f"{before} runs again as {after}" in answer.out
    assert "run again from" in shopped("jobs", "show", after).out
    shown = shopped("jobs", "show", before)
    assert "run again as" in shown.out
    assert after in shown.out
    assert shopped("jobs", "show", before, "--json").json["ran_again_as"] == [after]
    assert shopped("jobs", "show", after, "--json").json["ran_again_from"] == before
    refused = shopped("jobs", "run-again", after)
    assert refused.code == 2
    assert refused.says(after, "queued", "'run again'")
