"""A copy of an extension's rows: the same version, and every value compared."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.extension import Extension
from penstock.model.transfer import MoveIncomplete
from penstock.operate.backup import backup
from penstock.operate.tables import copy_tables
from penstock.store.contract import Store
from penstock.store.contract.tables import Table
from penstock.store.open import open_store
from tests.support.extensions import MakeTables, make_tables_in

NOTES = Table("notes_notes", ("id",))
SHOUT = """;
CREATE TRIGGER notes_shout AFTER INSERT ON notes_notes
BEGIN UPDATE notes_notes SET text = text || '!' WHERE id = new.id; END
"""
SQLITE = "CREATE TABLE notes_notes (id INTEGER PRIMARY KEY, text TEXT, at TEXT, size NUMERIC)"
POSTGRES = (
    "CREATE TABLE notes_notes (id bigint PRIMARY KEY, text text, at timestamptz, size numeric)"
)
ROW = {"id": 1, "text": "a", "at": "2026-01-01T00:00:00Z", "size": "1.50"}


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTables:
    return make_tables_in(tmp_path, monkeypatch)


@pytest.fixture
async def stores(tmp_path: Path, postgres_store_url: str) -> AsyncIterator[list[Store]]:
    """Two files and a database."""
    urls = (f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db", postgres_store_url)
    opened = [open_store(url) for url in urls]
    for store in opened:
        await store.open()
    yield opened
    for store in opened:
        await store.close()


@pytest.mark.parametrize("source", [0, 2], ids=["one dialect", "two dialects"])
async def test_a_copy_whose_values_differ_is_refused(
    stores: list[Store], notes: MakeTables, source: int
) -> None:
    files = {"0001_begin.sqlite": SQLITE + SHOUT, "0001_begin.postgres": POSTGRES}
    declared = notes(files, NOTES)
    one, other = stores[source].tables, stores[1].tables
    assert one is not None
    assert other is not None
    await one.make(declared)
    await one.put(NOTES, [ROW])
    with pytest.raises(MoveIncomplete, match="the rows of notes_notes"):
        await copy_tables("b.db", one, other, [declared], lambda *_: None)


async def test_values_that_dialects_write_in_their_own_way_are_no_difference(
    stores: list[Store], notes: MakeTables
) -> None:
    files = {"0001_begin.sqlite": SQLITE, "0001_begin.postgres": POSTGRES}
    declared = notes(files, NOTES)
    first, second, database = (store.tables for store in stores)
    assert first is not None
    assert second is not None
    assert database is not None
    await first.make(declared)
    await first.put(NOTES, [ROW])
    assert await copy_tables("database", first, database, [declared], lambda *_: None) == 1
    assert await copy_tables("b.db", database, second, [declared], lambda *_: None) == 1
    assert [row["text"] for row in await second.page(NOTES, None, 9)] == ["a"]


async def test_a_copy_has_the_version_of_what_it_copies(
    stores: list[Store], notes: MakeTables, tmp_path: Path
) -> None:
    more = Table("notes_more", ("id",))
    files = {
        "0001_begin.sqlite": SQLITE,
        "0001_begin.postgres": POSTGRES,
        "0002_more": "CREATE TABLE notes_more (id INTEGER PRIMARY KEY)",
    }
    declared = notes(files, NOTES, more)
    source = stores[2].tables
    assert source is not None
    await source.make(declared, version=1)
    await source.put(NOTES, [ROW])
    path = tmp_path / "copy.db"
    await backup(stores[2], path, extensions={"notes": Extension(name="notes", tables=declared)})
    copy = open_store(f"sqlite:///{path}")
    await copy.open()
    try:
        assert copy.tables is not None
        assert await copy.tables.versions() == {"notes": 1}
        assert await copy.tables.count(NOTES) == 1
        assert await copy.tables.make(declared) == (1, 2)
    finally:
        await copy.close()


async def test_rows_are_counted_weighed_and_read_by_whose_they_are(
    notes: MakeTables, stores: list[Store]
) -> None:
    owned = Table("notes_notes", ("id",), tenant="text")
    declared = notes({"0001_a.sqlite": SQLITE, "0001_a.postgres": POSTGRES}, owned)
    for store in (stores[0], stores[2]):
        tables = store.tables
        assert tables is not None
        await tables.make(declared)
        for number, tenant in enumerate(("acme", "beta", "acme", "acme"), 1):
            await tables.put(owned, [{**ROW, "id": number, "text": tenant}])
        mine = {"text": "acme"}
        assert (await tables.count(owned), await tables.count(owned, mine)) == (4, 3)
        first = await tables.page(owned, None, 2, mine)
        assert [row["id"] for row in first] == [1, 3]
        assert [row["id"] for row in await tables.page(owned, [3], 2, mine)] == [4]
        sizes = await tables.sizes([owned])
        assert sizes["acme"] == 3 * sizes["beta"] > 0
        assert await tables.sizes([owned], "beta") == {"beta": sizes["beta"]}
        assert await tables.sizes([owned], "nobody") == {}
        assert await tables.sizes([NOTES]) == await tables.sizes([]) == {}
        elsewhere = Table("notes_elsewhere", ("id",), tenant="text")
        twice = await tables.sizes([owned, elsewhere, NOTES, owned], "beta")
        assert twice == {"beta": 2 * sizes["beta"]}
