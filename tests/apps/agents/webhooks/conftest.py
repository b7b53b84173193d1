"""An application whose webhooks may go to this machine, and a receiver there."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.testing import FakeClock, drain
from tests.apps.agents.conftest import WITH_TABLES
from tests.apps.agents.webhooks.receiver import Receiver, receiving

HERE = ["127.0.0.0/8"]


def hooks_app(
    url: str, folder: Path, clock: Any, *, tables: str | None = None, **webhooks: Any
) -> Penstock:
    """One with the agent workers, whose settings of webhooks these are."""
    own: dict[str, Any] = {"folder": str(folder), "schedules": False}
    own["webhooks"] = {"allow": HERE, "timeout": 5.0, **webhooks}
    settings = Settings(extension={"agents": own})
    return Penstock(url, tables=tables, extensions=["agents"], settings=settings, clock=clock)


@pytest.fixture(params=WITH_TABLES)
async def hooks(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[Penstock]:
    """On each kind of store that has tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/work.db"
    else:
        url = request.getfixturevalue("postgres_store_url")
    async with hooks_app(url, tmp_path / "agents", clock) as app:
        yield app


@pytest.fixture
async def here(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Penstock]:
    """On SQLite alone, for what no store decides."""
    async with hooks_app(f"sqlite:///{tmp_path}/work.db", tmp_path / "agents", clock) as app:
        yield app


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def deliver(app: Penstock, webhook_id: str, payload: Any = None, **more: Any) -> Any:
    """Enqueue a delivery by its name and run what is due; the job."""
    data = {"webhookId": webhook_id, "payload": payload or {"n": 1}, **more}
    handle = await app.agents.enqueue("webhook-dispatch", data)
    await drain(app)
    return await app.get(handle.id)
