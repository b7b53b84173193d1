"""memory-consolidation: from what was told to what is known, however often it runs."""

from typing import Any, ClassVar

import pytest
from msgspec.json import decode

from penstock import Context, Penstock
from penstock.apps.agents.memory.records import NewMemory
from penstock.model.errors import InvalidArguments
from penstock.testing import FakeClock, drain
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.raw import rows

pytestmark = pytest.mark.thorough("postgres")

COFFEE = (
    "Ada likes strong coffee in the morning.",
    "Ada likes strong black coffee every morning.",
    "Each morning Ada likes strong coffee with milk.",
)
LAUNCH = (
    "The first release of Heron is planned for 27 March.",
    "The first release of Heron was moved to 17 April.",
)
OTHER = "Bert repairs old clocks in a cellar."
STATE = "SELECT id, memory_type, content, importance, valid_from, valid_to, metadata, source_id"


async def given(app: Penstock, *contents: str, **more: Any) -> list[str]:
    """Memories that became true one second after the other; past the gate."""
    told = [
        NewMemory(content=content, user_id="ada", at=1_000 * n, importance=0.1 * n)
        for n, content in enumerate(contents, 1)
    ]
    added = await app.agents.memories.add_many(told, gate=False, **more)
    return [each.memory.id for each in added]


async def consolidated(app: Penstock, **data: Any) -> dict[str, Any]:
    """Enqueue a consolidation by its name, run it, and return what it says."""
    tenant = data.pop("tenant", "")
    handle = await app.agents.enqueue("memory-consolidation", data, tenant=tenant)
    await drain(app)
    job = await app.get(handle.id)
    assert job.error is None
    result: dict[str, Any] = decode(job.result or "null")
    return result


class Consolidation(Play):
    """Memories of which some are alike and one has changed."""

    merging: ClassVar[str] = "merge"

    async def given(self, app: Penstock) -> None:
        await given(app, *COFFEE, *LAUNCH, OTHER)

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("memory-consolidation", {"consolidationType": self.merging})

    async def state(self, app: Penstock) -> Any:
        edges = "SELECT source, target, edge_type, weight FROM agents_edges"
        vectors = "SELECT namespace, id, text FROM agents_vectors"
        return (
            sorted(rows(app, f"{STATE} FROM agents_memories")),
            sorted(rows(app, edges)),
            sorted(rows(app, vectors)),
            sorted(rows(app, "SELECT job_id, memory_id FROM agents_halved")),
        )


@pytest.mark.thorough
async def test_a_consolidation_leaves_the_same_wherever_it_was_killed(stage: Stage) -> None:
    memories, edges, vectors, halved = await twice_and_killed(stage, Consolidation())
    [made] = [row for row in memories if row[1] == "semantic"]
    assert len(memories) == len(vectors) == 7
    halves = [0.05, 0.1, 0.15]
    assert sorted(row[3] for row in memories) == pytest.approx([*halves, 0.3, 0.4, 0.5, 0.6])
    assert {edge[2] for edge in edges} == {"part_of", "supersedes"}
    assert {edge[1] for edge in edges if edge[2] == "part_of"} == {made[0]}
    assert len(halved) == 3


@pytest.mark.quick("postgres")
async def test_what_is_alike_becomes_one_semantic_memory(agents: Penstock) -> None:
    *coffee, other = await given(agents, *COFFEE, OTHER)
    assert await consolidated(agents, memoryIds=[*coffee, other], userId="ada") == {
        "consolidated": True,
        "clustersProcessed": 2,
        "memoriesCreated": 1,
        "sourceMemoriesProcessed": 4,
    }
    [(content, importance, metadata, user, valid_from)] = rows(
        agents,
        "SELECT content, importance, metadata, user_id, valid_from FROM agents_memories "
        "WHERE memory_type = 'semantic'",
    )
    assert user == "ada"
    assert importance == pytest.approx(0.3)
    assert valid_from == 3_000
    told = decode(metadata)
    assert told["sourceMemoryIds"] == coffee
    assert told["synthesisConfidence"] == 0.9
    assert (told["consolidationType"], told["synthesisedBy"]) == ("summarize", "extractive")
    assert "black coffee" in content
    assert "with milk" in content
    edges = rows(agents, "SELECT source, weight FROM agents_edges WHERE edge_type = 'part_of'")
    assert {source for source, _ in edges} == {*coffee}
    assert all(0.8 < weight <= 1 for _, weight in edges)


async def test_a_synthesis_of_two_is_less_sure(agents: Penstock) -> None:
    await given(agents, *COFFEE[:2])
    await consolidated(agents)
    [(metadata,)] = rows(
        agents, "SELECT metadata FROM agents_memories WHERE memory_type = 'semantic'"
    )
    assert decode(metadata)["synthesisConfidence"] == 0.7


async def test_fewer_than_two_are_not_enough(agents: Penstock) -> None:
    [one] = await given(agents, COFFEE[0])
    expected = {"consolidated": False, "reason": "insufficient_memories"}
    assert await consolidated(agents, memoryIds=[one, "nobody"]) == expected
    assert await consolidated(agents, memoryIds=[]) == expected
    assert await consolidated(agents, tenant="elsewhere") == expected


async def test_a_changed_fact_supersedes_the_old_one_and_both_are_kept(agents: Penstock) -> None:
    before, after = await given(agents, *LAUNCH)
    await consolidated(agents)
    held = "SELECT id, valid_from, valid_to FROM agents_memories ORDER BY valid_from"
    assert rows(agents, held) == [(before, 1_000, 2_000), (after, 2_000, None)]
    edges = rows(agents, "SELECT source, target, edge_type FROM agents_edges")
    assert edges == [(after, before, "supersedes")]
    now = await agents.agents.memories.search("When is Heron released?", user="ada", k=1)
    assert now[0].memory.id == after
    then = await agents.agents.memories.search(
        "When was the release of Heron originally planned?", user="ada", k=1
    )
    assert then[0].memory.id == before


async def test_what_was_made_of_a_fact_ends_with_it(agents: Penstock, clock: FakeClock) -> None:
    first = await given(
        agents,
        "Heron is planned to launch on 27 March.",
        "The launch of Heron is planned: 27 March.",
    )
    await consolidated(agents)
    clock.advance(60)
    late = NewMemory(content="The launch of Heron was moved to 17 April.", user_id="ada", at=9_000)
    [added] = await agents.agents.memories.add_many([late])
    await consolidated(agents)
    ended = rows(agents, "SELECT memory_type FROM agents_memories WHERE valid_to = 9000 ORDER BY 1")
    assert ("semantic",) in ended
    sources = rows(agents, "SELECT DISTINCT source FROM agents_edges WHERE edge_type='supersedes'")
    assert sources == [(added.memory.id,)]
    assert len(first) == 2


async def test_another_of_its_kind_makes_a_new_memory_that_supersedes_the_former(
    agents: Penstock, clock: FakeClock
) -> None:
    await given(agents, *COFFEE[:2])
    await consolidated(agents)
    clock.advance(60)
    late = NewMemory(content=COFFEE[2], user_id="ada", at=9_000)
    await agents.agents.memories.add_many([late], gate=False)
    assert (await consolidated(agents))["memoriesCreated"] == 1
    held = rows(
        agents,
        "SELECT metadata FROM agents_memories WHERE memory_type='semantic' AND valid_to IS NULL",
    )
    assert len(held) == 1
    assert len(decode(held[0][0])["sourceMemoryIds"]) == 3


async def test_what_a_semantic_memory_says_already_is_not_stored_again(agents: Penstock) -> None:
    known = NewMemory(
        content=(
            "Ada likes strong coffee in the morning, at home. "
            "Ada likes strong black coffee every morning, with milk."
        ),
        user_id="ada",
        memory_type="semantic",
    )
    [added] = await agents.agents.memories.add_many([known])
    await given(agents, *COFFEE[:2])
    assert (await consolidated(agents))["memoriesCreated"] == 0
    targets = rows(agents, "SELECT DISTINCT target FROM agents_edges WHERE edge_type = 'part_of'")
    assert targets == [(added.memory.id,)]


async def test_memories_of_different_users_are_not_put_together(agents: Penstock) -> None:
    for user in ("ada", "bert"):
        told = NewMemory(content="The office is in Main Street.", user_id=user)
        await agents.agents.memories.add_many([told], gate=False)
    assert (await consolidated(agents))["memoriesCreated"] == 0


async def test_another_tenants_memories_are_not_touched(agents: Penstock) -> None:
    ours = await given(agents, *COFFEE[:2], tenant="north")
    theirs = await given(agents, *COFFEE[:2], tenant="south")
    result = await consolidated(agents, memoryIds=[*ours, *theirs], tenant="north")
    assert result["sourceMemoriesProcessed"] == 2
    assert rows(agents, "SELECT tenant_id FROM agents_memories WHERE memory_type='semantic'") == [
        ("north",)
    ]


async def test_its_progress_names_four_phases(
    agents: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(Context, "progress", lambda _, progress, *more: told.append(progress))
    await given(agents, *COFFEE[:2])
    await consolidated(agents)
    assert told == [
        {"phase": "analyzing", "percent": 10},
        {"phase": "generating", "percent": 40},
        {"phase": "indexing", "percent": 80},
        {"phase": "complete", "percent": 100},
    ]


async def test_consolidations_of_one_user_are_in_order(agents: Penstock) -> None:
    memories = agents.agents.memories
    first = await memories.consolidate(user="ada", tenant="north")
    second = await memories.consolidate(user="ada", tenant="north")
    elsewhere = await memories.consolidate(user="bert", tenant="north")
    keys = [(await agents.get(each.id)).order_key for each in (first, second, elsewhere)]
    assert keys[0] == keys[1] != keys[2]


async def test_data_that_is_none_is_refused(agents: Penstock) -> None:
    for wrong in ({"memoryIds": "all"}, {"consolidationType": "shred"}, {"table": "jobs"}):
        with pytest.raises(InvalidArguments):
            await agents.agents.enqueue("memory-consolidation", wrong)


async def test_many_memories_are_compared_by_their_neighbours(
    agents: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.apps.agents.memory.clusters.EXACT", 1)
    monkeypatch.setattr("penstock.apps.agents.memory.clusters.CHUNK", 2)
    await given(agents, *COFFEE, *LAUNCH, OTHER)
    result = await consolidated(agents)
    assert (result["clustersProcessed"], result["memoriesCreated"]) == (3, 1)
    assert len(rows(agents, "SELECT id FROM agents_memories WHERE valid_to IS NOT NULL")) == 1


async def test_a_memory_without_a_vector_gets_one(agents: Penstock) -> None:
    [one, _] = await given(agents, *COFFEE[:2])
    vectors = agents.agents.vectors
    await agents.transact(lambda tx: vectors.remove(tx, "memories", [one], tenant=""))
    assert (await consolidated(agents))["memoriesCreated"] == 1
    assert rows(agents, "SELECT count(*) FROM agents_vectors WHERE vector IS NOT NULL") == [(3,)]
