"""Applications whose vectors are searched by usearch and by pgvector."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.testing import FakeClock
from tests.apps.agents.vectors.given import TINY

WAYS = {
    "usearch on SQLite": ("sqlite", "usearch"),
    "usearch on PostgreSQL": ("postgres", "usearch"),
    "pgvector": ("postgres", "pgvector"),
}

Make = Callable[..., AbstractAsyncContextManager[Penstock]]


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Make:
    """Makes an application: `make("sqlite", "usearch", folder="…")`; each finds the same store."""

    def made(kind: str, provider: str, **own: Any) -> Penstock:
        if kind == "sqlite":
            url = f"sqlite:///{tmp_path}/work.db"
        else:
            url = request.getfixturevalue("postgres_store_url")
        told = {
            "folder": str(tmp_path / "agents"),
            "schedules": False,
            "embedder": TINY,
            "vectors": {"provider": provider},
            **own,
        }
        settings = Settings(extension={"agents": told})
        return Penstock(url, extensions=["agents"], settings=settings, clock=clock)

    return made


@pytest.fixture(params=list(WAYS))
async def app(request: pytest.FixtureRequest, make: Make) -> AsyncIterator[Penstock]:
    """An application for each way to search."""
    async with make(*WAYS[request.param]) as app:
        yield app


@pytest.fixture
async def file_app(make: Make) -> AsyncIterator[Penstock]:
    """One on SQLite, by usearch."""
    async with make("sqlite", "usearch") as app:
        yield app
