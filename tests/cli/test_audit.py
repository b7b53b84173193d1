from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from .conftest import Cli


def dead_job(cli: Cli) -> str:
    found: str = cli("dead", "ls", "--json").json[0]["job_id"]
    return found


def dead_group(cli: Cli) -> str:
    found: str = cli("dead", "groups", "--json").json[0]["id"]
    return found


def limited(cli: Cli) -> str:
    cli("limits", "set", "type", "greet", "--concurrency", "3")
    return "greet"


def waiting_job(cli: Cli) -> str:
    found: str = cli("enqueue", "greet", "--payload", '{"name": "x"}', "--json").json["id"]
    return found


def test_what_was_done_is_listed_newest_first_and_found_by_every_filter(shopped: Cli) -> None:
    job = waiting_job(shopped)
    shopped("jobs", "cancel", job, "--reason", "a secret reason")
    shopped("pause", "queue", "mail", "--by", "ada")
    assert [e["action"] for e in shopped("audit", "ls", "--json").json] == ["pause", "job.cancel"]
    for words in (("--action", "job"), ("--subject", f"job:{job}"), ("--before", "2")):
        (found,) = shopped("audit", "ls", *words, "--json").json
        assert found["action"] == "job.cancel"
    assert shopped("audit", "ls", "--actor", "user:nobody", "--json").json == []
    assert len(shopped("audit", "ls", "--since", "1h", "--json").json) == 2
    assert "a secret reason" not in shopped("audit", "ls", "--json").out
    table = shopped("audit", "ls", "--limit", "1").out
    assert "queue:mail" in table
    assert "--before 2" in table


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (lambda cli: ("jobs", "cancel", waiting_job(cli)), "job.cancel"),
        (lambda cli: ("jobs", "requeue", dead_job(cli)), "job.requeue"),
        (lambda cli: ("pause", "type", "greet"), "pause"),
        (lambda cli: ("resume", "type", "greet"), "resume"),
        (lambda cli: ("limits", "set", "type", "greet", "--concurrency", "3"), "limit.set"),
        (lambda cli: ("limits", "rm", "type", limited(cli)), "limit.remove"),
        (lambda cli: ("limits", "rm", "type", "greet"), "limit.remove.refused"),
        (lambda cli: ("breakers", "reset", "bank"), "breaker.reset.refused"),
        (lambda cli: ("followers", "drop", "x.y", "--yes"), "follower.drop.refused"),
        (lambda cli: ("pause", "job", waiting_job(cli)), "job.pause"),
        (lambda cli: ("resume", "job", waiting_job(cli)), "job.resume"),
        (lambda cli: ("dead", "requeue", dead_job(cli)), "job.requeue"),
        (lambda cli: ("dead", "resolve", dead_job(cli)), "dead.resolve"),
        (lambda cli: ("dead", "purge", dead_job(cli), "--yes"), "dead.purge"),
        (lambda cli: ("dead", "replay", dead_group(cli)), "dead.replay"),
        (lambda cli: ("dead", "release", dead_group(cli), "--yes"), "dead.release"),
        (lambda cli: ("schedules", "add", "n", "greet", "--every", "1h"), "schedule.put"),
        (
            lambda cli: (
                *("dead", "amend", dead_job(cli), "--args", '{"order": "B"}'),
                *("--app", "tests.cli.shop:app", "--url", store_of(cli)),
            ),
            "job.amend",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_command_that_changes_something_is_on_record(
    shopped: Cli, words: Callable[[Cli], tuple[str, ...]], action: str
) -> None:
    shopped(*words(shopped))
    entry = shopped("audit", "ls", "--json").json[0]
    assert entry["action"] == action
    assert entry["actor"].startswith("cli:")


def store_of(cli: Cli) -> str:
    return f"sqlite:///{Path.cwd() / 'work.db'}"


@pytest.mark.parametrize("verb", ["pause", "resume", "run", "rm"])
def test_what_is_done_to_schedules_is_on_record(shopped: Cli, verb: str) -> None:
    shopped("schedules", "add", "nightly", "greet", "--every", "1h")
    flags = ("--yes",) if verb == "rm" else ()
    assert shopped("schedules", verb, "nightly", *flags).code == 0
    entry = shopped("audit", "ls", "--json").json[0]
    named = {"rm": "schedule.remove"}.get(verb, f"schedule.{verb}")
    assert (entry["action"], entry["subject"]) == (named, "schedule:nightly")


def test_what_was_refused_is_on_record_as_refused(shopped: Cli) -> None:
    completed = shopped("jobs", "ls", "--status", "completed", "--json").json[0]["id"]
    assert shopped("jobs", "requeue", completed).code == 2
    entry = shopped("audit", "ls", "--json").json[0]
    assert (entry["action"], entry["details"]["error"]) == (
        "job.requeue.refused",
        "IllegalTransition",
    )


def test_an_intact_chain_is_proven_with_its_last_hash(shopped: Cli) -> None:
    assert shopped("audit", "verify", "--json").json["entries"] == 0
    shopped("pause", "queue", "mail")
    shopped("resume", "queue", "mail")
    last = shopped("audit", "ls", "--json").json[0]["hash"]
    answer = shopped("audit", "verify")
    assert answer.code == 0
    assert "2 entries" in answer.out
    assert last in answer.out


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE audit_log SET actor = 'user:somebody' WHERE seq = 2", "it was changed"),
        ("DELETE FROM audit_log WHERE seq = 2", "is missing"),
    ],
)
def test_a_changed_or_removed_entry_is_found(
    shopped: Cli, tmp_path: Path, change: str, problem: str
) -> None:
    for verb in ("pause", "resume", "pause"):
        shopped(verb, "queue", "mail")
    connection = apsw.Connection(str(tmp_path / "work.db"))
    for (trigger,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_log'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(change)
    connection.close()
    answer = shopped("audit", "verify")
    assert answer.code == 1
    assert answer.says("breaks at entry 2", problem)
    found = shopped("audit", "verify", "--json")
    assert found.code == 1
    assert found.json["intact"] is False
    assert found.json["problem"]["seq"] == 2


def test_an_end_that_was_cut_off_is_seen_by_who_kept_its_hash(shopped: Cli, tmp_path: Path) -> None:
    for verb in ("pause", "resume", "pause"):
        shopped(verb, "queue", "mail")
    hashes = [entry["hash"] for entry in shopped("audit", "ls", "--json").json]
    assert shopped("audit", "verify", "--known", hashes[0]).code == 0
    assert shopped("audit", "verify", "--known", hashes[-1]).code == 0
    connection = apsw.Connection(str(tmp_path / "work.db"))
    for (trigger,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit_log'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("DELETE FROM audit_log WHERE seq = 3")
    connection.close()
    assert shopped("audit", "verify").code == 0
    answer = shopped("audit", "verify", "--known", hashes[0])
    assert answer.code == 1
    assert answer.says("breaks at entry 3", "cut off")
