"""The jobs of vectors from their trigger to the rows: once, twice, and killed half-way."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from usearch.index import Index as Searched

from penstock import Context, Penstock
from penstock.apps.agents.vectors import graph as graphs
from penstock.apps.agents.vectors import reindex
from penstock.apps.agents.vectors.graph import Graph, Row, files_in, path_of
from penstock.apps.agents.vectors.store import Entry, vectors_of
from penstock.model.errors import InvalidArguments
from penstock.testing import drain
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.raw import rows
from tests.apps.agents.vectors.conftest import Make
from tests.apps.agents.vectors.given import TINY, Tiny, put, remove, store_of, table, unit

VECTORS = """
SELECT namespace, tenant_id, model, id, user_id, vector, text, metadata
FROM agents_vectors ORDER BY namespace, tenant_id, model, id
"""
INDEXES = "SELECT namespace, tenant_id, model, dimensions, generation FROM agents_indexes"
TARGETS = {"memories": {"table": "agents_memories"}}
TEXTS = [f"text number {n}" for n in range(40)]


async def add_memories(app: Penstock, tenant: str, *ids: str) -> None:
    """Rows that are to learn the ids of their vectors."""
    await vectors_of(app).indexes()
    columns = await app.table_store("agents").columns(table("agents_memories"))
    texts = {"content": "", "content_hash": "", "memory_type": "episodic", "metadata": "{}"}
    whole = {**texts, "source_type": "chat", "embedding_id": None, "tenant_id": tenant}
    made = [{**dict.fromkeys(columns, n), **whole, "id": id_} for n, id_ in enumerate(ids, 1)]
    await app.table_store("agents").put(table("agents_memories"), made)


class Embedding(Play):
    """Texts of which one is empty and one has no row."""

    settings: ClassVar[Mapping[str, Any]] = {"embedder": TINY, "targets": TARGETS}

    async def given(self, app: Penstock) -> None:
        await add_memories(app, "acme", *[f"m{n}" for n in range(40)])

    async def enqueue(self, app: Penstock) -> None:
        items = [{"sourceId": f"m{n}", "text": text} for n, text in enumerate(TEXTS)]
        items += [{"sourceId": "m0", "text": " "}, {"sourceId": "nobody", "text": "lost"}]
        data = {"items": items, "namespace": "memories", "target": "memories"}
        await app.agents.enqueue("embedding-batch", data, tenant="acme")  # type: ignore[attr-defined]

    async def state(self, app: Penstock) -> Any:
        told = rows(app, "SELECT id, embedding_id FROM agents_memories ORDER BY id")
        return told, [(*row[:5], bytes(row[5]), *row[6:]) for row in rows(app, VECTORS)]


async def test_texts_become_vectors_and_their_rows_learn_of_it(stage: Stage) -> None:
    told, vectors = await twice_and_killed(stage, Embedding())
    assert len(vectors) == len(told) == 40
    known = {row[3]: row for row in vectors}
    assert {embedding_id for _, embedding_id in told} == known.keys()
    for memory, embedding_id in told:
        text = TEXTS[int(memory[1:])]
        row = known[embedding_id]
        assert row[:3] == ("memories", "acme", "tiny-8")
        assert (row[5], row[6]) == (Tiny().embed([text])[0].tobytes(), text)


class Reindexing(Play):
    """Vectors of a former model, with the texts they were made of."""

    settings: ClassVar[Mapping[str, Any]] = {"embedder": TINY}

    async def given(self, app: Penstock) -> None:
        for tenant in ("acme", "north"):
            await put(app, unit(5, 3), tenant=tenant, text="the same", model="former")
        await remove(app, "n4")

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("embedding-reindex", {"batchSize": 2})  # type: ignore[attr-defined]

    async def state(self, app: Penstock) -> Any:
        vectors = rows(app, "SELECT tenant_id, model, id, vector FROM agents_vectors ORDER BY 1, 3")
        indexes = rows(app, INDEXES + " ORDER BY tenant_id")
        return [(*row[:3], bytes(row[3])) for row in vectors], indexes


@pytest.mark.thorough("postgres")
async def test_another_model_embeds_everything_again_and_takes_over(stage: Stage) -> None:
    vectors, indexes = await twice_and_killed(stage, Reindexing())
    assert indexes == [("docs", "acme", "tiny-8", 8, 2), ("docs", "north", "tiny-8", 8, 2)]
    new = Tiny().embed(["the same"])[0].tobytes()
    acme = [("acme", "tiny-8", f"n{n}", new) for n in range(4)]
    assert vectors == acme + [("north", "tiny-8", f"n{n}", new) for n in range(5)]


class Optimising(Play):
    """An index of which two fifths are deleted, and one of which a tenth is."""

    settings: ClassVar[Mapping[str, Any]] = {"embedder": TINY}

    async def given(self, app: Penstock) -> None:
        await put(app, unit(10))
        await put(app, unit(10), tenant="north")
        await remove(app, "n0", "n1", "n2", "n3")
        await remove(app, "n0", tenant="north")

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("index-optimization", {"threshold": 0.8})  # type: ignore[attr-defined]

    async def state(self, app: Penstock) -> Any:
        counts = """
        SELECT tenant_id, count(*), count(vector) FROM agents_vectors GROUP BY 1 ORDER BY 1
        """
        return rows(app, counts), rows(app, INDEXES + " ORDER BY tenant_id")


@pytest.mark.thorough
async def test_an_index_of_which_much_is_deleted_is_compacted(stage: Stage) -> None:
    counts, indexes = await twice_and_killed(stage, Optimising())
    assert counts == [("acme", 6, 6), ("north", 10, 9)]
    assert [index[4] for index in indexes] == [2, 1]


class Rebalancing(Play):
    """A graph that claims to hold all vectors and lacks half of them."""

    settings: ClassVar[Mapping[str, Any]] = {"embedder": TINY, "vectors": {"provider": "usearch"}}

    def stub(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(graphs, "FEW", 0)  # a graph of a few is searched as one

    async def given(self, app: Penstock) -> None:
        vectors = unit(60)
        await put(app, vectors)
        index = await store_of(app).find("docs", "acme")
        assert index is not None
        graph = Graph(index, app.extensions.settings("agents").vectors)
        now = app.store.clock.now()
        graph.take_in([Row(n, n, now, vectors[n - 1].tobytes()) for n in range(1, 61, 2)])
        graph.revision = index.revision
        graph.save(path_of(Path(app.extensions.settings("agents").folder), index))

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("index-rebalance", {"sample": 20}, tenant="acme")  # type: ignore[attr-defined]

    async def state(self, app: Penstock) -> Any:
        [path] = files_in(Path(app.extensions.settings("agents").folder))
        held = Searched.restore(str(path))
        assert held is not None
        measured = rows(app, "SELECT generation, recall FROM agents_indexes")
        return measured, sorted(int(key) for key in held.keys)


@pytest.mark.thorough
async def test_a_graph_that_misses_much_is_built_anew(stage: Stage) -> None:
    measured, numbers = await twice_and_killed(stage, Rebalancing())
    assert measured == [(2, 1.0)]
    assert numbers == list(range(1, 61))


async def result(app: Penstock, name: str, data: dict[str, Any], tenant: str = "acme") -> Any:
    """Run a job; its result as others read it."""
    handle = await app.agents.enqueue(name, data, tenant=tenant)  # type: ignore[attr-defined]
    await drain(app)
    job = await app.get(handle.id)
    assert job.status == "completed", job.error
    return json.loads(job.result or "null")


async def test_a_result_says_what_became_of_each_item(make: Make) -> None:
    async with make("sqlite", "usearch") as app:
        items = [
            {"sourceId": "a", "text": "fine", "embeddingId": "mine", "metadata": {"of": "a"}},
            {"sourceId": "b", "text": "broken"},
            {"sourceId": "c", "text": ""},
        ]
        told = await result(app, "embedding-batch", {"items": items, "namespace": "own"})
        assert told == {
            "total": 3,
            "succeeded": 1,
            "failed": 2,
            "results": [
                {"sourceId": "a", "embeddingId": "mine", "success": True},
                {
                    "sourceId": "b",
                    "embeddingId": None,
                    "success": False,
                    "error": "ValueError: this text is broken",
                },
                {
                    "sourceId": "c",
                    "embeddingId": None,
                    "success": False,
                    "error": "The text is empty.",
                },
            ],
        }
        [hit] = await vectors_of(app).search_text("own", "fine", tenant="acme")
        assert (hit.id, hit.metadata) == ("mine", {"of": "a"})


async def test_a_payload_names_no_table(make: Make) -> None:
    async with make("sqlite", "usearch") as app:
        data = {"items": [], "namespace": "own", "updateTable": "penstock_jobs"}
        with pytest.raises(InvalidArguments, match="updateTable"):
            await app.agents.enqueue("embedding-batch", data)  # type: ignore[attr-defined]


async def test_an_embedder_that_is_away_for_a_moment_is_asked_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    embed = Tiny.embed

    def away_at_first(self: Tiny, texts: Any) -> Any:
        asked.append(len(texts))
        if len(asked) == 1:
            raise ConnectionResetError("away")
        return embed(self, texts)

    monkeypatch.setattr(Tiny, "embed", away_at_first)
    async with make("sqlite", "usearch") as app:
        items = [{"sourceId": "a", "text": "tea"}, {"sourceId": "b", "text": "milk"}]
        data = {"items": items, "namespace": "own"}
        handle = await app.agents.enqueue("embedding-batch", data)  # type: ignore[attr-defined]
        await drain(app, through=60)
        job = await app.get(handle.id)
        assert job.status == "completed"
        assert asked == [2, 2]
        assert json.loads(job.result or "")["succeeded"] == 2


async def test_vectors_without_a_text_keep_their_model_unless_they_may_go(make: Make) -> None:
    async with make("sqlite", "usearch") as app:
        await put(app, unit(2, 3), model="former")
        await put(app, unit(3, 3)[2:], model="former", text="known")
        await result(app, "embedding-reindex", {})
        assert {row[2] for row in rows(app, VECTORS)} == {"former"}
        await result(app, "embedding-reindex", {"dropMissing": True})
        assert [(row[2], row[3]) for row in rows(app, VECTORS)] == [("tiny-8", "n0")]


async def test_what_is_written_while_models_change_is_found_after_the_switch(make: Make) -> None:
    former = {"provider": TINY["provider"], "settings": {"dimensions": 5}}
    async with make("sqlite", "usearch", embedder=former) as app:
        items = [{"sourceId": "a", "text": "old tea"}, {"sourceId": "b", "text": "cold milk"}]
        await result(app, "embedding-batch", {"items": items, "namespace": "own"})
    async with make("sqlite", "usearch", former_embedder=former) as app:
        changed = [{"sourceId": "a", "text": "fresh coffee"}]
        await result(app, "embedding-batch", {"items": changed, "namespace": "own"})
        before = await vectors_of(app).search_text("own", "cold milk", 1, tenant="acme")
        assert before[0].score == pytest.approx(1, abs=1e-5)
        await result(app, "embedding-reindex", {"namespace": "own"})
        for text in ("cold milk", "fresh coffee"):
            [hit] = await vectors_of(app).search_text("own", text, 1, tenant="acme")
            assert hit.score == pytest.approx(1, abs=1e-5)
        texts = {row[6] for row in rows(app, VECTORS)}
        assert texts == {"cold milk", "fresh coffee"}


async def test_what_changes_while_it_is_embedded_again_stays_changed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make("sqlite", "usearch") as app:
        await put(app, unit(3, 3), model="former", text="old")
        embed = reindex.embed

        async def meanwhile(embedder: Any, texts: Any) -> Any:
            monkeypatch.setattr(reindex, "embed", embed)
            await remove(app, "n0")
            entry = Entry(id="n1", vector=Tiny().embed(["new"])[0], tenant_id="acme", text="new")
            await app.transact(lambda tx: vectors_of(app).put(tx, "docs", [entry]))
            return await embed(embedder, texts)

        monkeypatch.setattr(reindex, "embed", meanwhile)
        await result(app, "embedding-reindex", {})
        found = {row[3]: (row[2], row[6]) for row in rows(app, VECTORS)}
        assert found == {"n1": ("tiny-8", "new"), "n2": ("tiny-8", "old")}


async def test_a_target_is_written_for_the_tenant_of_the_job_only(make: Make) -> None:
    async with make("sqlite", "usearch", targets=TARGETS) as app:
        await add_memories(app, "acme", "m1")
        data = {
            "items": [{"sourceId": "m1", "text": "tea"}],
            "namespace": "memories",
            "target": "memories",
        }
        await result(app, "embedding-batch", data, tenant="north")
        assert rows(app, "SELECT embedding_id FROM agents_memories") == [(None,)]
        assert rows(app, VECTORS) == []
        await result(app, "embedding-batch", data, tenant="acme")
        [(embedding_id,)] = rows(app, "SELECT embedding_id FROM agents_memories")
        assert rows(app, VECTORS)[0][3] == embedding_id


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        ({}, r"one that \[penstock.agents.targets\] describes \(none\)"),
        ({"notes": {"table": "penstock_jobs"}}, "a table of an installed extension, or one that"),
    ],
)
async def test_a_target_that_is_not_in_the_settings_ends_the_job(
    make: Make, targets: dict[str, Any], problem: str
) -> None:
    async with make("sqlite", "usearch", targets=targets) as app:
        data = {
            "items": [{"sourceId": "a", "text": "tea"}],
            "namespace": "own",
            "target": "notes",
        }
        handle = await app.agents.enqueue("embedding-batch", data)  # type: ignore[attr-defined]
        await drain(app)
        job = await app.get(handle.id)
        assert job.status == "dead_letter"
        assert problem.replace("\\", "") in str(job.error)


async def test_progress_counts_batches_up_to_80_percent(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(Context, "progress", lambda _, progress: told.append(progress))
    async with make("sqlite", "usearch") as app:
        items = [{"sourceId": str(n), "text": f"text {n}"} for n in range(33)]
        await result(app, "embedding-batch", {"items": items, "namespace": "own"})
    assert told == [
        {"phase": "embedding", "batch": 1, "totalBatches": 2, "percent": 40.0},
        {"phase": "embedding", "batch": 2, "totalBatches": 2, "percent": 80.0},
        {"phase": "complete", "percent": 100},
    ]
