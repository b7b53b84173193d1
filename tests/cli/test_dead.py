import pytest

from .conftest import Cli


def ids(cli: Cli, *words: str) -> list[str]:
    return [letter["job_id"] for letter in cli("dead", "ls", *words, "--json").json]


def test_dead_letters_are_listed(shopped: Cli) -> None:
    out = shopped("dead", "ls").out
    assert all(job_id in out for job_id in ids(shopped))
    assert "order A-2 can never be done" in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_dead_letter_is_shown_with_its_payload_and_history(shopped: Cli) -> None:
    job_id = ids(shopped)[0]
    letter = shopped("dead", "show", job_id, "--json").json
    assert letter["snapshot"]["payload"] == {"order": "A-2"}
    assert letter["snapshot"]["created_at"].endswith("Z")
    assert letter["executions"][0]["started_at"].endswith("Z")
    assert "A-2" in shopped("dead", "show", job_id).out


def test_one_is_requeued_by_its_id(shopped: Cli) -> None:
    one, two = ids(shopped)
    assert shopped("dead", "requeue", one, "--json").json["requeued"] == [one]
    assert shopped("jobs", "show", one, "--json").json["status"] == "pending"
    assert ids(shopped) == [two]


def test_a_type_is_requeued(shopped: Cli) -> None:
    assert "Requeued 2 of 2" in shopped("dead", "requeue", "--type", "doomed").out
    assert "nothing was requeued" in shopped("dead", "requeue", "--type", "doomed").out


def test_requeueing_all_needs_a_yes(shopped: Cli) -> None:
    asked = shopped("dead", "requeue", "--all")
    assert asked.code == 2
    assert asked.says("Run 2 dead jobs again?", "--yes")
    assert len(ids(shopped)) == 2
    assert len(shopped("dead", "requeue", "--all", "--yes", "--json").json["requeued"]) == 2


def test_one_that_is_refused_stops_no_other(shopped: Cli) -> None:
    one, two = ids(shopped)
    shopped("jobs", "requeue", one)
    answer = shopped("dead", "requeue", one, two)
    assert answer.code == 2
    assert "Requeued 1 of 2" in answer.out
    assert "requeue" in answer.err


def test_a_decision_is_recorded(shopped: Cli) -> None:
    one, two = ids(shopped)
    words = ("--as", "investigating", "--notes", "asked sales", "--by", "ada")
    assert shopped("dead", "resolve", one, *words).code == 0
    letter = shopped("dead", "show", one, "--json").json
    assert (letter["resolution"], letter["notes"]) == ("investigating", "asked sales")
    assert shopped("dead", "resolve", two, "--json").json == {
        "resolution": "resolved",
        "ids": [two],
    }
    assert ids(shopped) == [one]
    assert len(ids(shopped, "--resolution", "any")) == 2


def test_purging_needs_a_yes_and_deletes_the_job_too(shopped: Cli) -> None:
    one, _ = ids(shopped)
    asked = shopped("dead", "purge", one)
    assert asked.code == 2
    assert asked.says("for good?", "--yes")
    assert shopped("dead", "purge", one, "--yes", "--json").json == {"purged": 1}
    assert shopped("jobs", "show", one).code == 3
    assert shopped("dead", "purge", "--all", "--yes").out == "Purged 1.\n"
    assert "No dead letter is open." in shopped("dead", "ls").out


def test_a_filter_chooses_what_is_purged(shopped: Cli) -> None:
    one, two = ids(shopped)
    shopped("dead", "resolve", one)
    resolved = ("dead", "purge", "--resolution", "resolved")
    assert shopped(*resolved, "--older-than", "1d", "--dry-run").out == (
        "0 dead letters would be deleted.\n"
    )
    assert shopped(*resolved, "--type", "doomed", "--dry-run", "--json").json == {"matched": 1}
    assert len(ids(shopped, "--resolution", "any")) == 2
    assert shopped(*resolved, "--yes", "--json").json == {"purged": 1}
    assert ids(shopped, "--resolution", "any") == [two]


def test_a_group_is_purged_of_its_open_letters(shopped: Cli) -> None:
    one, other = ids(shopped)
    shopped("dead", "resolve", one)
    group = shopped("dead", "groups", "--json").json[0]["id"]
    assert shopped("dead", "purge", "--group", group, "--yes", "--json").json == {"purged": 1}
    assert shopped("jobs", "show", other).code == 3
    assert ids(shopped, "--resolution", "any") == [one]
    assert shopped("dead", "purge", "--group", "nothing", "--yes").code == 3


def test_a_job_that_was_requeued_is_not_purged(shopped: Cli) -> None:
    one, _ = ids(shopped)
    shopped("dead", "requeue", one)
    answer = shopped("dead", "purge", one, "--yes")
    assert answer.code == 2
    assert answer.says(one, "cancel it first")
    assert shopped("dead", "purge", "--all", "--yes", "--json").json == {"purged": 1}
    assert shopped("jobs", "show", one, "--json").json["status"] == "pending"


@pytest.mark.parametrize("command", ["show", "requeue", "resolve", "purge"])
def test_an_unknown_id_is_one_sentence_with_code_3(shopped: Cli, command: str) -> None:
    answer = shopped("dead", command, "01NOPE")
    assert answer.code == 3
    assert answer.says("no dead letter of 01NOPE")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("requeue",), "only one of them"),
        (("requeue", "01X", "--all"), "only one of them"),
        (("purge",), "only one of them"),
        (("purge", "--resolution", "maybe"), "'maybe'"),
        (("purge", "--older-than", "soon"), "'soon'"),
        (("purge", "--type", "doomed", "--all"), "only one of them"),
        (("purge", "--group", "a", "--all"), "only one of them"),
        (("ls", "--resolution", "maybe"), "'maybe'"),
        (("resolve", "01X", "--as", "any"), "'any'"),
        (("resolve", "01X", "--as", "maybe"), "'maybe'"),
    ],
)
def test_wrong_input_is_one_sentence(shopped: Cli, words: tuple[str, ...], part: str) -> None:
    answer = shopped("dead", *words)
    assert answer.code == 2
    assert answer.says(part)
