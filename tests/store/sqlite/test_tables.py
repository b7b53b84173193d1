"""The tables of extensions on SQLite: made up to a version, and none that is not declared."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import SchemaTooNew, StoreError
from penstock.store.contract.tables import Table, TableStore
from penstock.store.open import open_store
from tests.support.extensions import MakeTables, make_tables_in

NOTES = Table("notes_notes", ("id",))
STEP = "CREATE TABLE notes_notes (id INTEGER PRIMARY KEY, text TEXT, flags JSON)"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTables:
    return make_tables_in(tmp_path, monkeypatch)


@pytest.fixture
async def tables(tmp_path: Path) -> AsyncIterator[TableStore]:
    store = open_store(f"sqlite:///{tmp_path}/work.db")
    await store.open()
    assert store.tables is not None
    yield store.tables
    await store.close()


async def test_a_table_that_is_not_declared_is_refused_and_nothing_is_made(
    tables: TableStore, notes: MakeTables
) -> None:
    step = f"{STEP}; CREATE TABLE notes_more (id INTEGER PRIMARY KEY)"
    with pytest.raises(InvalidOption, match="notes_more"):
        await tables.make(notes({"0001_begin": step}, NOTES))
    assert await tables.versions() == {}
    assert await tables.columns(NOTES) == {}


async def test_an_index_for_search_need_not_be_declared(
    tables: TableStore, notes: MakeTables
) -> None:
    step = f"{STEP}; CREATE VIRTUAL TABLE notes_search USING fts5(text, content=notes_notes)"
    assert await tables.make(notes({"0001_begin": step}, NOTES)) == (0, 1)


async def test_a_declared_table_that_no_step_makes_is_refused(
    tables: TableStore, notes: MakeTables
) -> None:
    with pytest.raises(InvalidOption, match="notes_gone"):
        await tables.make(notes({"0001_begin": STEP}, NOTES, Table("notes_gone", ("id",))))
    assert await tables.versions() == {}


async def test_tables_can_be_made_as_they_were_at_a_version(
    tables: TableStore, notes: MakeTables
) -> None:
    files = {"0001_begin": STEP, "0002_more": "ALTER TABLE notes_notes ADD COLUMN more TEXT"}
    declared = notes(files, NOTES)
    assert await tables.make(declared, version=1) == (0, 1)
    assert await tables.columns(NOTES) == {"id": True, "text": True, "flags": False}
    assert await tables.make(declared) == (1, 2)
    assert "more" in await tables.columns(NOTES)
    with pytest.raises(StoreError, match="version 2 of the tables of 'notes'"):
        await tables.make(declared, version=1)
    with pytest.raises(SchemaTooNew):
        await tables.make(declared, version=3)


async def test_a_digest_tells_nothing_from_an_empty_text_and_one_column_from_the_next(
    tables: TableStore, notes: MakeTables
) -> None:
    await tables.make(notes({"0001_begin": STEP}, NOTES))
    digests = set()
    for text, flags in ((None, ""), ("", None), ("a", "bc"), ("ab", "c"), ("", "")):
        await tables.put(NOTES, [{"id": 1, "text": text, "flags": flags}])
        digests.add(await tables.digest(NOTES, ["text", "flags"]))
    assert len(digests) == 5
