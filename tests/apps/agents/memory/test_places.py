"""Memories go along with their installation, are erased with whose they are, and work on Redis."""

from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.operate.erase import erase
from penstock.operate.move import move
from penstock.operate.tables import Places
from penstock.testing import FakeClock, drain
from tests.apps.agents.raw import rows

SAID = (
    "The launch of Heron is planned for 27 March.",
    "The launch of Heron was moved to 17 April.",
    "Ada's cat is called Zwiebel.",
)


def opened(url: str, folder: Path, clock: FakeClock, tables: str | None = None) -> Penstock:
    own = {"folder": str(folder), "schedules": False}
    settings = Settings(url=url, tables=tables, extension={"agents": own})
    return Penstock(settings=settings, extensions=["agents"], clock=clock)


async def filled(app: Penstock) -> None:
    for n, content in enumerate(SAID, 1):
        await app.agents.memories.add(content, user="ada", at=n)
    await app.agents.memories.consolidate(user="ada")
    await drain(app)


async def seen(app: Penstock) -> list[Any]:
    """What is found by meaning and by words, and how it belongs together."""
    memories = app.agents.memories
    found = [
        (each.memory, round(each.score, 4))
        for asked in ("When is the launch?", "Zwiebel", "When was the launch originally planned?")
        for each in await memories.search(asked, user="ada", count=False)
    ]
    listed = await memories.list()
    return [found, listed, (await memories.graph([listed[0].id, listed[1].id])).edges]


@pytest.mark.thorough
async def test_memories_are_the_same_after_a_move(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    async with opened(old, tmp_path / "a", clock) as app:
        await filled(app)
        before = await seen(app)
        assert [edge.edge_type for edge in before[2]] == ["supersedes"]
        known = app.extensions.known()
    places = Places(known=known)
    await move(old, postgres_store_url, tables=places, clock=clock)
    async with opened(postgres_store_url, tmp_path / "b", clock) as app:
        assert (await seen(app))[1:] == before[1:]
    await move(postgres_store_url, new, tables=places, clock=clock)
    async with opened(new, tmp_path / "c", clock) as app:
        assert await seen(app) == before
        await app.agents.memories.add("Ada keeps bees.", user="ada")
        assert (await app.agents.memories.search("bees", user="ada"))[0].memory.id


async def test_a_person_is_erased_with_all_that_is_remembered_of_them(agents: Penstock) -> None:
    await filled(agents)
    await agents.agents.memories.add("Bert keeps bees.", user="bert")
    await erase(agents, person="ada")
    assert rows(agents, "SELECT user_id FROM agents_memories") == [("bert",)]
    assert rows(agents, "SELECT source FROM agents_edges") == []
    assert rows(agents, "SELECT user_id FROM agents_vectors") == [("bert",)]
    assert not [
        each
        for each in await agents.agents.memories.search("Zwiebel")
        if "Zwiebel" in each.memory.content
    ]


async def test_jobs_on_redis_consolidate_memories_in_tables_beside_it(
    tmp_path: Path, valkey_url: str, clock: FakeClock
) -> None:
    beside = f"sqlite:///{tmp_path}/tables.db"
    async with opened(valkey_url, tmp_path / "a", clock, tables=beside) as app:
        await filled(app)
        found = await app.agents.memories.search("When is the launch?", user="ada", k=1)
        assert "17 April" in found[0].memory.content
        assert (await app.agents.memories.counts())["superseded"] == 1
