from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from proof.bench import __main__ as command


def test_the_command_passes_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr("proof.bench.run.run_bench", lambda **given: seen.update(given) or 0)
    program = typer.Typer()
    program.command()(command.bench)
    words = ["--jobs", "500", "--quick", "--no-peers", "--directory", str(tmp_path), "--json"]
    assert CliRunner().invoke(program, words).exit_code == 0
    assert seen == {
        "jobs": 500,
        "quick": True,
        "peers": False,
        "directory": tmp_path,
        "as_json": True,
    }


@pytest.mark.parametrize("words", [["--jobs", "0"], ["--directory", "none"]])
def test_a_value_that_does_not_fit_is_refused(words: list[str]) -> None:
    program = typer.Typer()
    program.command()(command.bench)
    assert CliRunner().invoke(program, words).exit_code == 2
