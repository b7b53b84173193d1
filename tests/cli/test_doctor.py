from pathlib import Path

import pytest

from penstock.cli import checks
from penstock.model.redact import without_password
from penstock.operate.health import Check, HealthStatus
from penstock.store.contract import QueueDepth
from tests.support.workers import a_worker

from .conftest import Cli

WELL = Check(HealthStatus.HEALTHY, "Alive.")


def wrong(found: object) -> list[str]:
    return [check.name for check in found if check.level == "wrong"]  # type: ignore[attr-defined]


def test_a_healthy_store_passes(shopped: Cli) -> None:
    answer = shopped("doctor", "--json")
    assert answer.code == 0
    assert answer.json["healthy"]
    assert {"integrity", "wal", "schema", "workers", "dead letters"} <= {
        check["name"] for check in answer.json["checks"]
    }
    assert "Nothing is wrong" in shopped("doctor").out


def test_strict_takes_warnings_as_failures(shopped: Cli) -> None:
    assert shopped("doctor", "--strict").code == 1


def test_jobs_that_nobody_runs_fail_the_check(cli: Cli) -> None:
    cli("enqueue", "greet")
    answer = cli("doctor")
    assert answer.code == 1
    assert "none is alive, and 1 job could run" in answer.out


def test_a_type_the_application_lacks_fails_the_check(cli: Cli, tmp_path: Path) -> None:
    cli("enqueue", "unheard-of")
    url = f"sqlite:///{tmp_path / 'work.db'}"
    answer = cli("doctor", "tests.cli.shop:app", "--url", url)
    assert answer.code == 1
    assert "lacks type 'unheard-of'" in answer.out


def test_a_missing_store_is_one_sentence(cli: Cli) -> None:
    answer = cli("doctor")
    assert answer.code == 2
    assert answer.says("There is no store")


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_the_password_of_a_store_is_not_shown(
    cli: Cli, postgres_store_url: str, how: tuple[str, ...]
) -> None:
    shown = cli("doctor", *how, "--url", postgres_store_url).out
    assert without_password(postgres_store_url) in shown
    assert postgres_store_url not in shown


def test_the_redis_beside_postgres_is_looked_at_too(
    cli: Cli, postgres_store_url: str, valkey_url: str
) -> None:
    on_both = ("doctor", "--url", postgres_store_url, "--dispatch")
    answer = cli(*on_both, valkey_url)
    assert (answer.code, "dispatch      answers" in answer.out) == (0, True)
    answer = cli(*on_both, "redis://127.0.0.1:1")
    assert (answer.code, "away: work is found by PostgreSQL alone" in answer.out) == (1, True)


def test_a_redis_beside_a_file_is_refused(shopped: Cli) -> None:
    answer = shopped("doctor", "--dispatch", "redis://127.0.0.1:1")
    assert answer.code == 2
    assert answer.says("it goes with postgresql:// only")


def test_the_redis_of_the_environment_goes_with_the_store_of_the_environment(
    shopped: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DISPATCH", "redis://127.0.0.1:1")
    answer = shopped("doctor", "--url", "sqlite:///work.db")
    assert answer.code != 2
    assert "integrity" in answer.out


def test_a_silent_worker_and_one_that_does_not_poll_are_wrong() -> None:
    assert wrong(checks.worker_checks([a_worker()], {}, WELL)) == []
    silent = a_worker(heartbeat_age_ms=60_000)
    assert wrong(checks.worker_checks([a_worker(), silent], {}, WELL)) == ["heartbeat"]
    assert wrong(checks.worker_checks([a_worker(poll_age_ms=60_000)], {}, WELL)) == ["poll"]


def test_a_waiting_type_without_a_worker_is_wrong() -> None:
    assert wrong(checks.type_checks([a_worker(types=("greet",))], {"greet": 1}, None)) == []
    assert wrong(checks.type_checks([a_worker()], {"other": 1}, None)) == ["types"]


def test_more_waiting_jobs_than_are_counted_are_told_as_at_least_so_many() -> None:
    (nobody,) = checks.worker_checks([], {"greet": 1_000, "mail": 12}, WELL)
    assert "and at least 1,012 jobs could run" in nobody.detail
    (unserved,) = checks.type_checks([a_worker()], {"other": 1_000}, None)
    assert "waiting: 1,000 or more" in unserved.detail


@pytest.mark.parametrize(
    ("queues", "found"), [(None, []), (("mail",), []), (("slow",), ["queues"])]
)
def test_a_waiting_queue_without_a_worker_is_wrong(
    queues: tuple[str, ...] | None, found: list[str]
) -> None:
    depth = QueueDepth(queue="mail", queued=2, oldest_queued_ms=5)
    assert wrong(checks.queue_checks([a_worker(queues=queues)], [depth])) == found


def test_a_message_that_a_server_delivers_needs_no_a_worker() -> None:
    assert (
        wrong(checks.type_checks([a_worker()], {"penstock.alert": 1}, frozenset({"greet"}))) == []
    )
    assert wrong(checks.worker_checks([], {"penstock.alert": 1}, WELL)) == []


def test_the_doctor_says_of_queues_and_dead_letters_what_health_says(shopped: Cli) -> None:
    told = {check["name"]: check for check in shopped("doctor", "--json").json["checks"]}
    levels = {"ok": "healthy", "warning": "degraded", "wrong": "unhealthy"}
    for name, check in shopped("health", "--json").json["checks"].items():
        if name in ("queues", "dead_letters"):
            said = told[name.replace("_", " ")]
            assert (levels[said["level"]], said["detail"]) == (check["status"], check["detail"])


def test_a_worker_that_the_store_fails_is_degraded() -> None:
    found = list(checks.worker_checks([a_worker(state="degraded", poll_age_ms=60_000)], {}, WELL))
    assert wrong(found) == ["store"]
    assert "is degraded" in found[-1].detail
    assert wrong(checks.worker_checks([a_worker(state="running")], {}, WELL)) == []
