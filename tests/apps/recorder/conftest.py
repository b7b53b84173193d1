"""What tests of the recorder share: a home of its own, and its file."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.app.transact import make_tables
from penstock.apps.recorder import home as recorder_home


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorder's file as `penstock hooks install` makes it, to be copied."""
    path = tmp_path_factory.mktemp("made") / recorder_home.DATABASE

    async def make() -> None:
        async with Penstock(f"sqlite:///{path}", extensions=["events", "recorder"]) as app:
            for extension in app.extensions:
                if extension.tables is not None:
                    await make_tables(app, extension.tables)

    asyncio.run(make())
    return path


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorder's home in which nothing is yet."""
    folder = tmp_path / "penstock-home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv(recorder_home.FOLDER, str(folder))
    monkeypatch.delenv("PENSTOCK_HOOK_DISABLED", raising=False)
    return folder


@pytest.fixture
def recorder_file(empty_home: Path, made_file: Path) -> Path:
    """The recorder's file in its home, with all tables."""
    path = empty_home / recorder_home.DATABASE
    shutil.copy(made_file, path)
    os.chmod(path, 0o600)
    return path
