"""The second act of the demonstration: sessions become memories, patterns and webhooks."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from penstock import Penstock
from penstock.apps.agents.demo import CLOSED, TENANTS, consolidate, go_on, play
from penstock.config import Settings
from penstock.demo import live, support
from penstock.testing import FakeClock, drain, in_memory


@pytest.fixture
async def app(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Penstock]:
    """One whose clock stands still: by their time it is chosen which tasks are not learned from."""
    told = live.app.settings.extension["agents"] | {"schedules": False}
    settings = Settings(url=f"sqlite:///{tmp_path}/shop.db", extension={"agents": told})
    async with Penstock(settings=settings, extensions=["events", "agents"], clock=clock) as made:
        yield made


async def test_sessions_become_memories_and_patterns(app: Penstock) -> None:
    assert await play(app, 24) == 24
    for tenant in TENANTS:
        assert await consolidate(app, tenant) == 3
    await drain(app)
    for tenant in TENANTS:
        data = {"batchSize": 500, "epochs": 2}
        await app.agents.enqueue("pattern-training", data, tenant=tenant)
    await drain(app)
    counts = await app.agents.memories.counts()
    assert counts["semantic"] >= 1, "what was said again in other words became one"
    assert counts["superseded"] >= 1, "what has changed is kept with its time"
    assert len(await app.agents.learning.trajectories()) == 24
    assert await app.agents.learning.patterns(active=True) != []


async def test_a_session_goes_on_turn_by_turn_and_its_end_is_told(app: Penstock) -> None:
    async with support.listening(app):
        while await go_on(app, Random(1)) < 2:
            pass
        for _ in range(6):
            await go_on(app, Random(1))
        await drain(app)
        webhooks = await app.agents.webhooks.list()
        sent = [each for hook in webhooks for each in await app.agents.webhooks.deliveries(hook.id)]
        assert {each.topic for each in sent} == {CLOSED}
        assert {each.status for each in sent} == {"success"}
    async with support.listening(app):
        again = await app.agents.webhooks.list()
    assert [each.id for each in again] == [each.id for each in webhooks]
    assert {each.url for each in again}.isdisjoint(each.url for each in webhooks)


async def test_without_a_place_for_files_the_act_is_left_out() -> None:
    with in_memory(live.app) as app:
        async with app:
            assert not support.is_played(app)
            assert (await support.support(), await support.remember(), await support.learn()) == (
                0,
                0,
                0,
            )
