"""Commands take the beginning of a job's id."""

import pytest

from .conftest import Cli


@pytest.mark.parametrize("words", [["show"], ["explain"], ["tree"], ["logs"], ["cancel"]])
def test_commands_take_the_beginning_of_an_id(cli: Cli, words: list[str]) -> None:
    job_id = cli("enqueue", "greet", "--json").json["id"]
    for typed in (job_id[:-3], job_id[:20].lower(), job_id):
        answer = cli("jobs", *words, typed)
        assert answer.code == 0, answer.err
        assert job_id in answer.out or words == ["logs"]


def test_other_commands_take_it_too(shopped: Cli) -> None:
    dead = shopped("dead", "ls", "--json").json[0]["job_id"]
    short = dead.lower()  # others were made in the same millisecond
    assert dead in shopped("dead", "show", short).out
    assert dead in shopped("dead", "resolve", short).out
    assert shopped("dead", "requeue", short).code == 0
    assert shopped("pause", "job", short).code == 0
    assert shopped("resume", "job", short).code == 0
    assert shopped("jobs", "ls", "--before", short).code == 0
    assert shopped("jobs", "ls", "--parent", short).code == 0
    waiting = shopped("enqueue", "greet", "--after", short, "--json").json["id"]
    assert shopped("jobs", "after", waiting[:-1], short).code == 0


def test_a_beginning_that_several_jobs_share_is_refused_with_some_of_them(cli: Cli) -> None:
    ids = [cli("enqueue", "greet", "--json").json["id"] for _ in range(4)]
    answer = cli("jobs", "show", ids[0][:4])
    assert answer.code == 3
    assert answer.says("Several jobs have an id that begins with", ids[3], "type more of it")
    assert ids[0] not in answer.err
    assert cli("jobs", "show", "7ZZZ").code == 3
    assert cli("jobs", "show", "?").code == 3
