"""What tests of the agent workers share: applications on SQLite and PostgreSQL, and a stage."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.testing import FakeClock
from tests.apps.agents.killing import Setting, Stage
from tests.apps.conftest import TABLES

WITH_TABLES = ("sqlite", "postgres")


@pytest.fixture(params=WITH_TABLES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    """Empty stores of each kind that has tables, as many as are asked for."""
    numbers = count(1)

    @contextmanager
    def empty() -> Iterator[Setting]:
        folder = tmp_path / f"stage{next(numbers)}"
        folder.mkdir()
        if request.param == "sqlite":
            yield Setting(f"sqlite:///{folder}/work.db", folder / "agents")
            return
        databases = request.getfixturevalue("databases")
        url = databases.take_store(*TABLES)
        yield Setting(url, folder / "agents")
        databases.give_back(url)

    return Stage(request.param, empty)


@pytest.fixture(params=WITH_TABLES)
async def agents(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[Penstock]:
    """An application with the agent workers, on each kind of store that has tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/work.db"
    else:
        url = request.getfixturevalue("postgres_store_url")
    own = {"folder": str(tmp_path / "agents"), "schedules": False}
    settings = Settings(extension={"agents": own})
    async with Penstock(url, extensions=["agents"], settings=settings, clock=clock) as app:
        yield app
