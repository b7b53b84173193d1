import json

from .conftest import Cli


def test_an_installation_without_workers_is_unhealthy(shopped: Cli) -> None:
    answer = shopped("health")
    assert answer.code == 1
    assert "No worker is alive; start one." in answer.out
    assert "Unhealthy." in answer.out


def test_a_script_gets_the_document_of_the_server(shopped: Cli, monkeypatch) -> None:
    monkeypatch.setenv("PENSTOCK_MIN_WORKERS", "0")
    answer = shopped("health", "--json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert found["checks"].keys() == {"store", "workers", "queues", "dead_letters"}
    assert found["details"]["live_workers"] == 0


def test_a_store_that_is_not_there_is_refused(cli: Cli) -> None:
    assert cli("health", "--url", "sqlite:///nothing.db").code == 2
