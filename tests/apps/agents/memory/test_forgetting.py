"""memory-cleanup and memory-importance-decay."""

from typing import Any

import pytest
from msgspec.json import decode

from penstock import Penstock
from penstock.apps.agents.memory.records import NewMemory
from penstock.testing import FakeClock, drain
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.raw import rows

HOUR = 3_600_000
DAY = 24 * HOUR
WORDS = ("bees", "boats", "maps", "clocks", "lutes", "trains", "ferns")


async def given(app: Penstock, **more: Any) -> list[str]:
    """Memories about this and that, each a tenth more important than the one before."""
    now = app.store.clock.now()
    told = [
        NewMemory(
            content=f"Ada collects {word}.",
            user_id="ada",
            importance=0.1 * n,
            expires_at=now if word == "ferns" else None,
        )
        for n, word in enumerate(WORDS, 1)
    ]
    added = await app.agents.memories.add_many(told, **more)
    return [each.memory.id for each in added]


async def run(app: Penstock, name: str, data: dict[str, Any], tenant: str = "") -> dict[str, Any]:
    handle = await app.agents.enqueue(name, data, tenant=tenant)
    await drain(app)
    job = await app.get(handle.id)
    assert job.error is None
    result: dict[str, Any] = decode(job.result or "null")
    return result


class Cleanup(Play):
    """Forget all that matters little, two at a time."""

    async def given(self, app: Penstock) -> None:
        ids = await given(app)
        await app.agents.memories.link(ids[0], ids[5])
        await app.agents.memories.link(ids[4], ids[5])

    async def enqueue(self, app: Penstock) -> None:
        data = {"minImportance": 0.35, "minAge": 0, "batchSize": 2}
        await app.agents.enqueue("memory-cleanup", data)

    async def state(self, app: Penstock) -> Any:
        return (
            sorted(rows(app, "SELECT content FROM agents_memories")),
            rows(app, "SELECT count(*) FROM agents_edges"),
            sorted(rows(app, "SELECT text FROM agents_vectors WHERE vector IS NOT NULL")),
        )


@pytest.mark.thorough
async def test_a_cleanup_leaves_the_same_wherever_it_was_killed(stage: Stage) -> None:
    kept = [(f"Ada collects {word}.",) for word in ("clocks", "lutes", "trains")]
    assert await twice_and_killed(stage, Cleanup()) == (kept, [(1,)], kept)


class Decay(Play):
    """Have half a day pass over memories."""

    async def given(self, app: Penstock) -> None:
        await given(app)
        clock = app.store.clock
        assert isinstance(clock, FakeClock)
        clock.advance(3 * HOUR / 1000)
        await app.agents.memories.search("Who collects boats?", user="ada", k=1)
        clock.advance(10 * HOUR / 1000)

    async def enqueue(self, app: Penstock) -> None:
        clock = app.store.clock
        assert isinstance(clock, FakeClock)
        clock.set_wall("2026-01-01T13:00:00Z")
        await app.agents.enqueue("memory-importance-decay", {"decayFactor": 0.5})

    async def state(self, app: Penstock) -> Any:
        found = rows(app, "SELECT content, importance, last_decayed_at FROM agents_memories")
        start = 1_767_225_600_000
        return sorted((text, round(much, 6), (at - start) // HOUR) for text, much, at in found)


@pytest.mark.thorough
async def test_a_decay_leaves_the_same_wherever_it_was_killed(stage: Stage) -> None:
    found = {text: (much, at) for text, much, at in await twice_and_killed(stage, Decay())}
    assert found["Ada collects bees."] == (0.025, 12)
    # Recalled once, 10 hours ago: one period, and more slowly: 0.2 * 0.5 ** (1 / (1 + ln 2)).
    assert found["Ada collects boats."] == (0.132812, 9)


async def test_a_cleanup_says_what_it_forgot_and_why(agents: Penstock, clock: FakeClock) -> None:
    await given(agents)
    clock.advance(31 * DAY / 1000)
    assert await run(agents, "memory-cleanup", {"minImportance": 0.25}) == {
        "deleted": 3,
        "expired": 1,
        "lowImportance": 2,
        "edgesDeleted": 0,
    }


async def test_what_was_recalled_lately_is_not_forgotten(
    agents: Penstock, clock: FakeClock
) -> None:
    await given(agents)
    clock.advance(31 * DAY / 1000)
    await agents.agents.memories.search("Who collects bees?", user="ada", k=1)
    await run(agents, "memory-cleanup", {"minImportance": 0.25})
    left = rows(agents, "SELECT content FROM agents_memories WHERE importance < 0.25")
    assert left == [("Ada collects bees.",)]


async def test_a_tenants_job_keeps_to_that_tenant(agents: Penstock, clock: FakeClock) -> None:
    await given(agents, tenant="north")
    await given(agents, tenant="south")
    clock.advance(6 * HOUR / 1000)
    decayed = await run(agents, "memory-importance-decay", {"decayFactor": 0.5}, "north")
    assert decayed == {"processed": 7, "decayed": 7}
    cleaned = await run(agents, "memory-cleanup", {"minImportance": 1, "minAge": 0}, "north")
    assert cleaned["deleted"] == 7
    left = rows(agents, "SELECT tenant_id, max(importance) FROM agents_memories GROUP BY 1")
    assert left == [("south", pytest.approx(0.7))]


async def test_less_than_a_period_changes_nothing(agents: Penstock, clock: FakeClock) -> None:
    await given(agents)
    clock.advance(6 * HOUR / 1000 - 1)
    decayed = await run(agents, "memory-importance-decay", {"decayFactor": 0.99})
    assert decayed == {"processed": 7, "decayed": 0}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("memory-importance-decay", {"decayFactor": 0}),
        ("memory-importance-decay", {"period": 1}),
        ("memory-cleanup", {"batchSize": 0}),
    ],
)
async def test_data_that_makes_no_sense_is_a_dead_letter_at_once(
    agents: Penstock, name: str, data: dict[str, Any]
) -> None:
    handle = await agents.agents.enqueue(name, data)
    await drain(agents)
    job = await agents.get(handle.id)
    assert (job.status, job.attempts) == ("dead_letter", 1)
