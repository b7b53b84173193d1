"""`torture` passes on what it is told; what it does is tested elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from .conftest import Cli


def test_it_passes_its_options_and_its_verdict_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr("penstock.torture.run_torture", lambda **given: seen.update(given) or 1)
    words = ("--jobs", "50", "--kills", "3", "--for", "90s", "--seed", "7")
    assert cli("torture", *words, "--url", "sqlite:///t.db").code == 1
    with seen.pop("ground")(tmp_path) as place:
        assert place.settings == {"url": "sqlite:///t.db", "dispatch": ""}
    assert seen == {"jobs": 50, "kills": 3, "seconds": 90.0, "seed": 7, "as_json": False}


def test_it_does_not_touch_the_store_of_the_environment(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setenv("PENSTOCK_URL", "postgresql://nobody.example/work")
    monkeypatch.setattr("penstock.torture.run_torture", lambda **given: seen.update(given) or 0)
    assert cli("torture").code == 0
    with seen["ground"](tmp_path) as place:
        assert place.url == f"sqlite:///{tmp_path / 'torture.db'}"


@pytest.mark.parametrize(
    ("words", "part"), [(("--kills", "-1"), "--kills"), (("--for", "ever"), "'ever'")]
)
def test_a_value_that_does_not_fit_is_refused_in_one_sentence(
    words: tuple[str, ...], part: str, cli: Cli
) -> None:
    answer = cli("torture", *words)
    assert answer.code == 2
    assert answer.says(part)
