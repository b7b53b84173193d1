import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from penstock import Worker
from penstock.cli import app as program
from tests.cli import shop

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


class Answer:
    """What a command wrote and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def says(self, *parts: str) -> bool:
        """One sentence on standard error with these parts, and nothing like a traceback."""
        one = self.err.startswith("penstock: ") and self.err.count("\n") == 1
        clean = "Traceback" not in self.err + self.out
        return one and clean and all(part in self.err for part in parts)


Cli = Callable[..., Answer]
built = cache(get_command)
"""Putting the commands together costs more than most of them do."""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli("jobs", "ls")` in a directory of its own, on the store `work.db` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_URL", f"sqlite:///{tmp_path / 'work.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("typer.testing._get_command", built)

    def call(*words: str, stdin: str | None = None) -> Answer:
        found = CliRunner().invoke(program, list(words), input=stdin, prog_name="penstock")
        return Answer(found.exit_code, found.stdout, found.stderr)

    return call


@pytest.fixture(scope="session")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a worker has been: 3 completed, 2 dead, 1 waiting for its retry."""
    file = tmp_path_factory.mktemp("worked") / "work.db"

    async def work() -> None:
        app = shop.build(f"sqlite:///{file}")
        async with app:
            for name in ("ada", "grace", "alan"):
                await app.enqueue_payload("greet", json.dumps({"name": name}))
            for order in ("A-1", "A-2"):
                await app.enqueue_payload("doomed", json.dumps({"order": order}))
            await app.enqueue_payload("later")
            await Worker(app, burst=True).run()

    asyncio.run(work())
    return file


@pytest.fixture
def shopped(worked: Path, cli: Cli, tmp_path: Path) -> Cli:
    """The command line on a copy of that store."""
    shutil.copy(worked, tmp_path / "work.db")
    return cli


@pytest.fixture
def penstock(tmp_path: Path) -> Callable[..., Answer]:
    """The real command in a process of its own."""

    def call(*words: str, timeout: float = 60) -> Answer:
        found = subprocess.run(
            [sys.executable, "-m", "penstock.cli", *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
        )
        return Answer(found.returncode, found.stdout, found.stderr)

    return call
