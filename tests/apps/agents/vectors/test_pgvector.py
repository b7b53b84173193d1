"""pgvector: a column derived from the bytes, in the same commit, or filled when rows come in."""

import psycopg
import pytest

from penstock import Penstock
from penstock.apps.agents.extension import TABLES
from penstock.apps.agents.vectors import pgvector_store
from penstock.apps.agents.vectors.pgvector_store import NoPgvector
from penstock.apps.agents.vectors.store import vectors_of
from penstock.operate.tables import copy_tables
from tests.apps.agents.raw import rows
from tests.apps.agents.vectors.conftest import Make
from tests.apps.agents.vectors.given import put, remove, unit

UNFILLED = "SELECT count(*) FROM agents_vectors WHERE embedding IS NULL"


async def nearest(app: Penstock) -> list[str]:
    hits = await vectors_of(app).search("docs", unit(1)[0], 3, tenant="acme")
    return [hit.id for hit in hits]


async def test_the_column_is_written_with_the_row_and_goes_with_it(make: Make) -> None:
    async with make("postgres", "") as app:
        await put(app, unit(5))
        [(text,)] = rows(app, "SELECT embedding::text FROM agents_vectors WHERE id = 'n3'")
        told = [float(number) for number in text.strip("[]").split(",")]
        assert told == pytest.approx(unit(5)[3].tolist(), abs=1e-6)
        await remove(app, "n3")
        assert rows(app, UNFILLED) == [(1,)]


async def test_a_graph_is_made_with_the_numbers_of_the_settings(make: Make) -> None:
    vectors = {"provider": "pgvector", "m": 16, "ef_construction": 64}
    async with make("postgres", "", vectors=vectors) as app:
        await put(app, unit(5))
        await nearest(app)
        made = "SELECT indexdef FROM pg_indexes WHERE indexname = 'agents_vectors_near_8'"
        [(statement,)] = rows(app, made)
        assert "USING hnsw" in statement
        assert "m='16', ef_construction='64'" in statement


async def test_the_graph_finds_what_comparing_all_finds_and_never_fewer(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector_store, "FEW", 0)
    async with make("postgres", "pgvector") as app:
        await put(app, unit(300), tenant="north")
        await put(app, unit(40))
        exact = await vectors_of(app).exact("docs", unit(1)[0], 40, tenant="acme")
        found = await vectors_of(app).search("docs", unit(1)[0], 40, tenant="acme")
        assert [hit.id for hit in found] == [hit.id for hit in exact]
        assert await vectors_of(app).recall("docs", "north", sample=20) == 1


async def test_rows_that_come_from_elsewhere_are_found(make: Make) -> None:
    async with make("sqlite", "usearch") as source, make("postgres", "pgvector") as target:
        await put(source, unit(20))
        await remove(source, "n0")
        expected = await nearest(source)
        await target.read(lambda tx: tx.agents.rows("all_indexes", _ALL))
        here, there = source.table_store("agents"), target.table_store("agents")
        await copy_tables("target", here, there, [TABLES], lambda *_: None)
        assert rows(target, UNFILLED) == [(20,)]
        assert await nearest(target) == expected
        assert rows(target, UNFILLED) == [(1,)]


_ALL = {"namespace": None, "tenant_id": None}


async def test_rows_go_back_to_a_file_and_are_found_there(make: Make) -> None:
    async with make("sqlite", "usearch") as target, make("postgres", "pgvector") as source:
        await put(source, unit(20))
        await target.read(lambda tx: tx.agents.rows("all_indexes", _ALL))
        here, there = source.table_store("agents"), target.table_store("agents")
        await copy_tables("target", here, there, [TABLES], lambda *_: None)
        assert await nearest(target) == await nearest(source)


async def test_without_pgvector_usearch_does_the_work_unless_the_settings_insist(
    make: Make, postgres_store_url: str
) -> None:
    async with make("postgres", "") as app:
        await app.read(lambda tx: tx.agents.rows("all_indexes", _ALL))
        with psycopg.connect(postgres_store_url) as connection:
            connection.execute("ALTER TABLE penstock.agents_vectors DROP COLUMN embedding")
        await put(app, unit(20))
        assert len(await nearest(app)) == 3
        assert await remove(app, "n0") == 1
    async with make("postgres", "pgvector") as app:
        with pytest.raises(NoPgvector, match=r"made without pgvector; install it .* \"usearch\""):
            await put(app, unit(1))
