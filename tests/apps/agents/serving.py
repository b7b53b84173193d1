"""An application with the agent workers behind a server, on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.config import Settings
from tests.apps.agents.furnish import Receiver, receiving

WITH_TABLES = ("sqlite", "postgres")


@pytest.fixture(params=WITH_TABLES)
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Penstock]:
    """An application with the agent workers, whose webhooks may stay on this machine."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/work.db"
    else:
        url = request.getfixturevalue("postgres_store_url")
    async with Penstock(url, extensions=["events", "agents"], settings=settings(tmp_path)) as made:
        yield made


def settings(folder: Path) -> Settings:
    """What such an application is told."""
    own = {
        "folder": str(folder / "agents"),
        "schedules": False,
        "webhooks": {"allow": ["127.0.0.0/8"], "jobs": False, "events": False},
    }
    return Settings(extension={"agents": own}, requests_per_minute=0)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver of webhooks."""
    async with receiving() as found:
        yield found
