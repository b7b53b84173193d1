"""`bench` and `torture` pass on what they are told; what they do is tested elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from .conftest import Cli


def test_bench_passes_its_options_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr("penstock.bench.run_bench", lambda **given: seen.update(given) or 0)
    words = ("--jobs", "500", "--quick", "--no-peers", "--directory", str(tmp_path), "--json")
    assert cli("bench", *words).code == 0
    assert seen == {
        "jobs": 500,
        "quick": True,
        "peers": False,
        "directory": tmp_path,
        "as_json": True,
    }


def test_torture_passes_its_options_and_its_verdict_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        "penstock.testing.torture.run_torture", lambda **given: seen.update(given) or 1
    )
    words = (
        "--jobs",
        "50",
        "--kills",
        "3",
        "--for",
        "90s",
        "--seed",
        "7",
        "--url",
        "sqlite:///t.db",
    )
    assert cli("torture", *words).code == 1
    assert seen == {
        "jobs": 50,
        "kills": 3,
        "seconds": 90.0,
        "seed": 7,
        "store": "sqlite",
        "url": "sqlite:///t.db",
        "dispatch": None,
        "as_json": False,
    }


def test_torture_does_not_touch_the_store_of_the_environment(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        "penstock.testing.torture.run_torture", lambda **given: seen.update(given) or 0
    )
    assert cli("torture", "--store", "postgres+redis").code == 0
    assert (seen["url"], seen["store"]) == (None, "postgres+redis")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("bench", "--jobs", "0"), "--jobs"),
        (("bench", "--directory", "none"), "none"),
        (("torture", "--kills", "-1"), "--kills"),
        (("torture", "--for", "ever"), "'ever'"),
        (("torture", "--store", "mysql"), "sqlite, postgres, redis, postgres+redis"),
        (("torture", "--store", "redis", "--url", "redis://there"), "--store"),
    ],
)
def test_wrong_input_is_one_sentence(cli: Cli, words: tuple[str, ...], part: str) -> None:
    answer = cli(*words)
    assert answer.code == 2
    assert answer.says(part)
