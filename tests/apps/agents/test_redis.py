from pathlib import Path

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.model.store_errors import NoTables
from penstock.testing import FakeClock, drain
from tests.apps.agents.raw import rows_of


def on(url: str, folder: Path, clock: FakeClock, tables: str | None = None) -> Penstock:
    own = {"folder": str(folder / "agents"), "schedules": False}
    settings = Settings(extension={"agents": own})
    return Penstock(url, tables=tables, extensions=["agents"], settings=settings, clock=clock)


async def test_where_jobs_are_in_redis_a_place_for_tables_is_named(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    file = tmp_path / "tables.db"
    async with on(valkey_url, tmp_path, clock, f"sqlite:///{file}") as app:
        await app.agents.sessions.open(tenant="north", user="ada", session_id="s1")
        clock.advance(90)
        job = await app.agents.enqueue("session-cleanup", {"maxAge": 60_000}, tenant="north")
        await drain(app)
        assert (await job.result()).expired == 1
    assert rows_of(f"sqlite:///{file}", "SELECT id, status FROM agents_sessions") == [
        ("s1", "expired")
    ]


async def test_without_a_place_for_tables_that_is_said(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with on(valkey_url, tmp_path, clock) as app:
        with pytest.raises(NoTables, match="tables"):
            await app.agents.sessions.open(tenant="north", user="ada")
