import pytest

from .conftest import Cli


def test_figures_of_the_last_hour(shopped: Cli) -> None:
    found = shopped("stats", "--json").json
    assert (found["total"]["completed"], found["dead_letters"]) == (3, 2)
    assert {row["type"] for row in found["types"]} == {"greet", "doomed", "later"}
    out = shopped("stats").out
    assert "3 completed of 6 jobs in the last 1h" in out
    assert "on average" in out
    assert 0 <= found["total"]["duration_avg_ms"] <= found["total"]["duration_max_ms"]
    assert found["total_jobs"] == 6
    assert "2 dead letters" in out
    assert "completed per" in out
    assert max(map(len, out.splitlines())) <= 100


def test_figures_of_one_tenant(shopped: Cli) -> None:
    found = shopped("stats", "--tenant", "acme", "--json").json
    assert (found["total_jobs"], found["total"]["completed"], found["queues"]) == (0, 0, [])


def test_an_empty_store_has_nothing_to_tell(cli: Cli) -> None:
    cli("migrate")
    assert "Nothing waits" in cli("stats").out
    assert cli("stats", "--window", "7d", "--json").json["total"]["completed"] == 0


@pytest.mark.parametrize("window", ["soon", "1s", "5000d"])
def test_a_wrong_window_is_one_sentence(shopped: Cli, window: str) -> None:
    answer = shopped("stats", "--window", window)
    assert answer.code == 2
    assert answer.says(window)


def test_without_workers_it_says_how_to_start_one(shopped: Cli) -> None:
    assert "penstock worker" in shopped("workers", "ls").out
    assert shopped("workers", "ls", "--json").json == []
