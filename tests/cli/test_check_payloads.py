from pathlib import Path

import pytest

from . import shop
from .conftest import Cli

CHECK = ("check-payloads", "tests.cli.shop:app")


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application on this test's store: one that was opened once keeps its own."""
    monkeypatch.setattr(shop, "app", shop.build(f"sqlite:///{tmp_path / 'work.db'}"))


@pytest.fixture
def waiting(cli: Cli) -> Cli:
    """The command line on a store in which one job waits."""
    cli("enqueue", "greet", "--payload", '{"name":"ada"}')
    return cli


def test_a_store_that_fits_ends_with_code_0(waiting: Cli) -> None:
    answer = waiting(*CHECK)
    assert answer.code == 0
    assert "All of 1 waiting job and 0 schedules fit." in answer.out


def test_what_does_not_fit_ends_with_code_1_and_is_shown(waiting: Cli) -> None:
    waiting("enqueue", "greet", "--payload", '{"times":2}')
    waiting("enqueue", "gone")
    answer = waiting(*CHECK)
    assert answer.code == 1
    shown = " ".join(answer.out.split())
    assert "Argument 'name' of job type 'greet' is wrong" in shown
    assert "No job type is named 'gone'" in shown
    assert "2 of 3 waiting jobs and 0 schedules do not fit" in shown


def test_scripts_get_counts_and_examples(waiting: Cli) -> None:
    for _ in range(3):
        waiting("enqueue", "greet", "--payload", "{}")
    answer = waiting(*CHECK, "--json", "--examples", "1")
    assert (answer.code, answer.json["fits"], answer.json["checked"]) == (1, False, 4)
    [greet] = answer.json["jobs"]
    assert (greet["known"], greet["fitting"], greet["unfit"]) == (True, 1, 3)
    assert len(greet["examples"]) == 1


def test_a_store_that_is_not_there_is_not_created(cli: Cli) -> None:
    answer = cli(*CHECK)
    assert answer.code == 2
    assert answer.says("There is no store")


def test_an_application_that_is_not_there_is_wrong_input(waiting: Cli) -> None:
    answer = waiting("check-payloads", "tests.cli.nowhere:app")
    assert answer.code == 2
    assert answer.says("tests.cli.nowhere")
