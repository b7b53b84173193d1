"""What was learned, and what was archived, goes along with its installation."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.operate.move import move
from penstock.operate.tables import Places
from penstock.testing import FakeClock
from tests.apps.agents.learning.tasks import EMBEDDER, give_tasks, run

DEPLOY = "Deploy the service to search"


async def seen(app: Penstock) -> list[Any]:
    """What was learned, and what it says of a task."""
    learning = app.agents.learning
    return [
        await learning.patterns(),
        await learning.trajectories(),
        await learning.classifiers(),
        await learning.predict(DEPLOY, skills=["deploy"], tenant="north"),
        await learning.match(DEPLOY, skills=["deploy"], tenant="north", use=False),
        await app.agents.sessions.turns("north-000"),
    ]


@pytest.mark.thorough
async def test_what_was_learned_is_the_same_after_a_move_and_back(
    tmp_path: Path, postgres_store_url: str
) -> None:
    clock = FakeClock()
    own = {"embedder": EMBEDDER, "folder": str(tmp_path / "agents"), "schedules": False}

    def opened(url: str) -> Penstock:
        settings = Settings(extension={"agents": own})
        return Penstock(url, extensions=["agents"], settings=settings, clock=clock)

    urls = [f"sqlite:///{tmp_path}/a.db", postgres_store_url, f"sqlite:///{tmp_path}/b.db"]
    async with opened(urls[0]) as app:
        await give_tasks(app, 40)
        await run(app, "pattern-training", {})
        await run(app, "ewc-consolidation", {})
        await run(app, "session-archive", {"sessionIds": ["north-000"]})
        before = await seen(app)
        assert all(before)
        known = app.extensions.known()
    for source, target in pairwise(urls):
        await move(source, target, tables=Places(known=known), clock=clock)
        async with opened(target) as app:
            assert await seen(app) == before
    async with opened(urls[-1]) as app:
        (restored,) = await app.agents.sessions.restore(["north-000"])
        assert (restored.status, restored.turns) == ("closed", 4)
