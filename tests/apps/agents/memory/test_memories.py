"""`app.agents.memories`: added through a gate, found, changed and forgotten."""

import pytest

from penstock import Penstock
from penstock.apps.agents.memory.memories import Memories, MemoryNotFound
from penstock.apps.agents.memory.records import MemoryFilter, NewMemory
from penstock.model.errors import ForeignTenant, InvalidOption
from penstock.operate.actor import Actor
from penstock.testing import FakeClock
from tests.apps.agents.raw import rows

pytestmark = pytest.mark.thorough("postgres")


async def add(app: Penstock, *contents: str, **more: object) -> list[str]:
    """Remember things of Ada; their ids."""
    told = {"user": "ada", **more}
    return [
        (await app.agents.memories.add(each, **told)).memory.id  # type: ignore[arg-type]
        for each in contents
    ]


@pytest.mark.quick("postgres")
async def test_a_memory_and_its_vector_are_one_commit(agents: Penstock) -> None:
    [known] = await add(agents, "Ada lives in Turin.", tenant="north", workspace="w")
    found = rows(agents, "SELECT id, tenant_id, workspace_id, user_id FROM agents_memories")
    assert found == [(known, "north", "w", "ada")]
    assert rows(agents, "SELECT id, tenant_id, user_id FROM agents_vectors") == [
        (known, "north", "ada")
    ]


async def test_what_restates_a_known_memory_is_not_stored(agents: Penstock) -> None:
    [first] = await add(agents, "Ada lives in Turin, near the river.", importance=0.4)
    same = await agents.agents.memories.add("Ada lives near the river", user="ada", importance=0.9)
    assert (same.memory.id, same.stored) == (first, False)
    assert rows(agents, "SELECT id, importance FROM agents_memories") == [(first, 0.9)]


async def test_what_changes_a_memory_is_stored(agents: Penstock) -> None:
    await add(agents, "The launch is on 1 June.", "The launch is on 2 June.", "Ada eats fish.")
    await add(agents, "Ada does not eat fish.")
    assert rows(agents, "SELECT count(*) FROM agents_memories") == [(4,)]


async def test_the_same_of_another_user_or_tenant_is_another_memory(agents: Penstock) -> None:
    said = "The password policy is strict."
    await add(agents, said)
    await add(agents, said, user="bert")
    await add(agents, said, tenant="north")
    assert rows(agents, "SELECT count(*) FROM agents_memories") == [(3,)]


async def test_what_was_superseded_may_be_so_again(agents: Penstock) -> None:
    turin, milan = await add(agents, "Ada lives in Turin.", "Ada lives in Milan.")
    await agents.agents.memories.merge([turin, milan], content="Ada lives in Milan now.")
    again = await agents.agents.memories.add("Ada lives in Turin.", user="ada")
    assert again.stored
    assert again.memory.id != turin


async def test_what_comes_twice_from_its_source_is_remembered_once(agents: Penstock) -> None:
    told = [
        NewMemory(content=f"Message {n} of the channel.", source_type="slack", source_id=f"m{n}")
        for n in range(3)
    ]
    first = await agents.agents.memories.add_many(told, gate=False)
    again = await agents.agents.memories.add_many(told, gate=False)
    assert [each.memory for each in again] == [each.memory for each in first]
    assert rows(agents, "SELECT count(*) FROM agents_memories") == [(3,)]


async def test_a_search_finds_by_meaning_and_by_words(agents: Penstock) -> None:
    await add(
        agents,
        "Ada takes the train to work.",
        "Ada's cat is called Zwiebel.",
        "Ada prefers tea to coffee.",
    )
    search = agents.agents.memories.search
    assert (await search("How does she commute?", user="ada"))[0].memory.content.startswith(
        "Ada takes the train"
    )
    assert "Zwiebel" in (await search("Zwiebel", user="ada", k=1))[0].memory.content


async def test_a_search_counts_what_it_found(agents: Penstock, clock: FakeClock) -> None:
    [tea, cat] = await add(agents, "Ada drinks tea.", "Ada has a cat.")
    clock.advance(60)
    await agents.agents.memories.search("What does Ada drink?", user="ada", k=1)
    await agents.agents.memories.search("What does Ada drink?", user="ada", k=1, count=False)
    found = rows(agents, "SELECT id, access_count, last_accessed_at FROM agents_memories")
    assert sorted(found) == sorted([(tea, 1, clock.now()), (cat, 0, None)])


async def test_a_search_sees_only_whose_it_is_and_what_is_shared(agents: Penstock) -> None:
    memories = agents.agents.memories
    await memories.add("Ada keeps bees in the garden.", user="ada", tenant="north")
    await memories.add("Bert keeps bees on the roof.", user="bert", tenant="north")
    await memories.add("Carla keeps bees at school.", user="carla", tenant="north", is_shared=True)
    await memories.add("Nobody in particular keeps bees.", tenant="north")
    await memories.add("In the south they keep bees.", user="ada", tenant="south")
    found = await memories.search("Who keeps bees?", user="ada", tenant="north")
    assert {each.memory.user_id for each in found} == {"ada", "carla", None}
    assert len(found) == 3
    everybody = await memories.search("Who keeps bees?", tenant="north")
    assert len(everybody) == 4


async def test_what_has_expired_is_not_found(agents: Penstock, clock: FakeClock) -> None:
    await add(agents, "Ada's guest stays until noon.", expires_at=clock.now() + 1_000)
    assert await agents.agents.memories.search("Who stays?", user="ada")
    clock.advance(1)
    assert not await agents.agents.memories.search("Who stays?", user="ada")


async def test_words_that_a_query_would_choke_on_are_only_words(agents: Penstock) -> None:
    await add(agents, "Ada wrote NEAR and AND in capitals.", tenant="t'1\"x")
    for text in ('"', "' OR 1=1 --", "NEAR(a b)", "a* AND -b", "(", "& | !", "😀", "AND"):
        await agents.agents.memories.search(text, user="ada", tenant="t'1\"x")
    found = await agents.agents.memories.search("capitals", user="ada", tenant="t'1\"x")
    assert len(found) == 1


async def test_an_edited_memory_is_found_by_what_it_says_now(agents: Penstock) -> None:
    [one, _] = await add(agents, "Ada drives a tractor.", "Ada has a cat.")
    edited = await agents.agents.memories.edit(one, content="Ada bakes bread.", importance=0.9)
    assert (edited.content, edited.importance) == ("Ada bakes bread.", 0.9)
    found = await agents.agents.memories.search("Who makes bread?", user="ada", k=1)
    assert found[0].memory.id == one
    assert rows(agents, "SELECT text FROM agents_vectors WHERE id = ?", one) == [
        ("Ada bakes bread.",)
    ]
    assert not [
        each
        for each in await agents.agents.memories.search("tractor", user="ada")
        if "tractor" in each.memory.content
    ]


async def test_a_memory_is_shared_and_no_longer(agents: Penstock) -> None:
    memories = agents.agents.memories
    [one] = await add(agents, "The printer is on the second floor.")
    assert not await memories.search("Where is the printer?", user="bert")
    await memories.edit(one, is_shared=True)
    assert await memories.search("Where is the printer?", user="bert")
    await memories.edit(one, is_shared=False)
    assert not await memories.search("Where is the printer?", user="bert")


async def test_a_deleted_memory_leaves_nothing(agents: Penstock) -> None:
    one, other = await add(agents, "Ada plays the lute.", "Ada plays chess.", is_shared=True)
    await agents.agents.memories.link(one, other)
    await agents.agents.memories.delete(one)
    assert rows(agents, "SELECT id FROM agents_memories") == [(other,)]
    assert rows(agents, "SELECT source FROM agents_edges") == []
    kept = rows(agents, "SELECT DISTINCT id FROM agents_vectors WHERE vector IS NOT NULL")
    assert kept == [(other,)]
    with pytest.raises(MemoryNotFound):
        await agents.agents.memories.get(one)


async def test_merged_memories_are_superseded_by_what_they_say_together(agents: Penstock) -> None:
    one, other = await add(agents, "Ada plays the lute.", "Ada plays chess.", importance=0.3)
    merged = await agents.agents.memories.merge([one, other])
    assert merged.content == "Ada plays the lute. Ada plays chess."
    assert (merged.memory_type, merged.importance) == ("semantic", 0.3)
    ended = rows(agents, "SELECT id FROM agents_memories WHERE valid_to IS NOT NULL")
    assert sorted(ended) == sorted([(one,), (other,)])
    edges = rows(agents, "SELECT source, target, edge_type FROM agents_edges")
    assert sorted(edges) == sorted(
        [(merged.id, one, "supersedes"), (merged.id, other, "supersedes")]
    )


async def test_memories_of_different_users_are_not_merged(agents: Penstock) -> None:
    [one] = await add(agents, "Ada plays the lute.")
    [other] = await add(agents, "Bert plays chess.", user="bert")
    with pytest.raises(InvalidOption, match="one user"):
        await agents.agents.memories.merge([one, other])
    with pytest.raises(InvalidOption, match="at least two"):
        await agents.agents.memories.merge([one, one])


async def test_a_graph_is_drawn_of_edges(agents: Penstock) -> None:
    a, b, c, d = await add(agents, "It rained.", "The street is wet.", "Ada fell.", "Ada is well.")
    memories = agents.agents.memories
    await memories.link(b, a, "caused_by", 0.9)
    await memories.link(c, b, "caused_by", 0.7)
    await memories.link(d, c)
    near = await memories.graph([a])
    assert {memory.id for memory in near.memories} == {a, b}
    wide = await memories.graph([a], depth=2)
    assert {(e.source, e.target, e.weight) for e in wide.edges} == {(b, a, 0.9), (c, b, 0.7)}
    assert await memories.unlink(b, a, "caused_by")
    assert not await memories.unlink(b, a, "caused_by")
    assert await memories.edges(a) == []


async def test_memories_are_listed_the_latest_first(agents: Penstock, clock: FakeClock) -> None:
    ids = []
    for content in ("Ada is tired.", "Ada is in Rome.", "Ada has a cold."):
        ids += await add(agents, content)
        clock.advance(1)
    memories = agents.agents.memories
    assert [m.id for m in await memories.list(MemoryFilter(user="ada"))] == ids[::-1]
    rest = await memories.list(MemoryFilter(user="ada", before=ids[2], limit=1))
    assert [m.id for m in rest] == [ids[1]]
    assert await memories.list(MemoryFilter(memory_type="semantic")) == []
    assert await memories.list(MemoryFilter(current=False)) == []
    assert (await memories.counts())["episodic"] == 3
    with pytest.raises(MemoryNotFound):
        await memories.list(MemoryFilter(before="nobody"))


async def test_an_actor_of_a_tenant_sees_and_changes_only_its_own(agents: Penstock) -> None:
    [south] = await add(agents, "The south has a secret.", tenant="south")
    north = Memories(agents, Actor("token:north", tenant="north"))
    with pytest.raises(MemoryNotFound):
        await north.get(south)
    for change in (north.delete(south), north.edit(south, content="x"), north.edges(south)):
        with pytest.raises(MemoryNotFound):
            await change
    with pytest.raises(ForeignTenant):
        await north.search("secret", tenant="south")
    assert (await north.add("The north as well.", tenant="north")).memory.tenant_id == "north"
    assert len(await north.list()) == 1


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"content": "  "}, "content"),
        ({"content": "x" * 20_001}, "content"),
        ({"content": "x", "importance": 1.1}, "importance"),
        ({"content": "x", "memory_type": "vague"}, "memory_type"),
        ({"content": "x", "metadata": {"a": object()}}, "metadata"),
    ],
)
async def test_what_cannot_be_remembered_is_refused(
    agents: Penstock, wrong: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidOption, match=named):
        await agents.agents.memories.add(**wrong)


@pytest.mark.parametrize("wrong", ["a\0b", "a\ud800b", 5])
async def test_what_not_every_store_holds_is_refused_by_all(agents: Penstock, wrong: str) -> None:
    memories = agents.agents.memories
    [known] = await add(agents, "Ada lives in Turin.")
    for given in ({"tenant": wrong}, {"user": wrong}, {"workspace": wrong}, {"source_id": wrong}):
        with pytest.raises(InvalidOption, match="valid Unicode"):
            await memories.add("Ada has two cats.", **given)
    for call in (memories.add(wrong), memories.edit(known, content=wrong), memories.search(wrong)):
        with pytest.raises(InvalidOption, match="valid Unicode"):
            await call


async def test_what_cannot_be_embedded_is_found_by_its_words(agents: Penstock) -> None:
    added = await agents.agents.memories.add("\u2800", user="ada")
    assert added.stored
    assert await agents.agents.memories.get(added.memory.id)
