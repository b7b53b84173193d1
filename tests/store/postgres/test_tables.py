"""The tables of extensions on PostgreSQL: rows as they were, sequences, rights, one batch."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreError
from penstock.store.contract import Store
from penstock.store.contract.tables import Table, TableStore
from penstock.store.open import open_store
from penstock.store.postgres.connect import Connection, address_of
from tests.store.postgres.conftest import Logins
from tests.support.extensions import MakeTables, make_tables_in

NOTES = Table("notes_notes", ("id",))
PLAIN = "CREATE TABLE notes_notes (id bigint PRIMARY KEY, text text)"
QUERIES = """
-- name: add
INSERT INTO notes_notes (id, text) VALUES (?, ?);

-- name: add_all
INSERT INTO notes_notes (id, text) VALUES (-1, 'not for many');

-- name: all
SELECT id, text FROM notes_notes ORDER BY id;
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTables:
    return make_tables_in(tmp_path, monkeypatch)


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[TableStore]:
    store = open_store(url)
    await store.open()
    try:
        assert store.tables is not None
        yield store.tables
    finally:
        await store.close()


@pytest.fixture
async def tables(store: Store) -> TableStore:
    assert store.tables is not None
    return store.tables


async def test_an_error_that_one_unit_swallows_loses_nothing_of_the_others(
    tables: TableStore, notes: MakeTables
) -> None:
    declared = notes({"0001_begin": PLAIN, "queries": QUERIES}, NOTES)
    await tables.make(declared)
    held, go_on = Event(), Event()

    def hold(tx: Any) -> None:
        held.set()
        go_on.wait(5)

    def swallow(tx: Any) -> None:
        queries = tx.of(declared)
        queries.run("add", (2, "lost"))
        try:
            queries.run("add", (2, "twice"))
        except psycopg.Error:
            return

    first = asyncio.ensure_future(tables.write(hold))
    await asyncio.to_thread(held.wait, 5)
    good = asyncio.ensure_future(tables.write(lambda tx: tx.of(declared).run("add", (1, "kept"))))
    bad = asyncio.ensure_future(tables.write(swallow))
    await asyncio.sleep(0)
    go_on.set()
    await first
    assert await good == 1
    with pytest.raises(StoreError, match="let the error out"):
        await bad
    rows = await tables.read(lambda tx: tx.of(declared).rows("all"))
    assert rows == [(1, "kept")]


async def test_many_rows_run_the_query_of_that_name_and_no_other(
    tables: TableStore, notes: MakeTables
) -> None:
    declared = notes({"0001_begin": PLAIN, "queries": QUERIES}, NOTES)
    await tables.make(declared)
    await tables.write(lambda tx: tx.of(declared).many("add", [(1, "a"), (2, "b")]))
    assert await tables.read(lambda tx: tx.of(declared).rows("all")) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("kind", ["bigserial", "bigint GENERATED ALWAYS AS IDENTITY"])
@pytest.mark.parametrize("key", ["id", "text"])
async def test_rows_that_were_put_do_not_stand_in_the_way_of_new_ones(
    tables: TableStore, notes: MakeTables, kind: str, key: str
) -> None:
    table = Table("notes_notes", (key,))
    step = f"CREATE TABLE notes_notes (id {kind} UNIQUE, text text NOT NULL, PRIMARY KEY ({key}))"
    add = "-- name: add\nINSERT INTO notes_notes (text) VALUES (?) RETURNING id;"
    declared = notes({"0001_begin": step, "queries": add}, table)
    await tables.make(declared)
    rows = [{"id": 7, "text": "a"}, {"id": 3, "text": "b"}]
    await tables.put(table, rows)
    await tables.put(table, rows)
    await tables.put(table, [{"id": 5, "text": "c"}])
    assert {row["id"] for row in await tables.page(table, None, 9)} == {3, 5, 7}
    assert await tables.write(lambda tx: tx.of(declared).value("add", ("d",))) == 8


async def test_a_digest_changes_with_any_value_of_any_row(
    tables: TableStore, notes: MakeTables
) -> None:
    step = "CREATE TABLE notes_notes (id bigint PRIMARY KEY, text text, at timestamptz)"
    await tables.make(notes({"0001_begin": step}, NOTES))
    row = {"id": 1, "text": "a", "at": "2026-01-01 00:00:00+00"}
    await tables.put(NOTES, [row, row | {"id": 2}])
    columns = ["id", "text", "at"]
    digest = await tables.digest(NOTES, columns)
    await tables.put(NOTES, [row | {"at": "2026-01-01 00:00:01+00"}])
    assert await tables.digest(NOTES, columns) != digest
    await tables.put(NOTES, [row])
    assert await tables.digest(NOTES, columns) == digest
    assert await tables.columns(NOTES) == {"id": True, "text": True, "at": False}


async def test_values_are_read_the_same_whatever_the_server_is_set_to(
    postgres_store_url: str, notes: MakeTables
) -> None:
    step = "CREATE TABLE notes_notes (id bigint PRIMARY KEY, at timestamptz)"
    address = address_of(postgres_store_url)
    async with opened(postgres_store_url) as tables:
        await tables.make(notes({"0001_begin": step}, NOTES))
        await tables.put(NOTES, [{"id": 1, "at": "2026-02-01 00:00:00+00"}])
        digest = await tables.digest(NOTES, ["at"])
    with psycopg.connect(postgres_store_url.partition("?")[0], autocommit=True) as connection:
        database = str(address.options["dbname"])
        for name, value in (("TimeZone", "Asia/Tokyo"), ("DateStyle", "SQL, DMY")):
            connection.execute(f"ALTER DATABASE {database} SET {name} = '{value}'".encode())
    async with opened(postgres_store_url) as tables:
        assert await tables.digest(NOTES, ["at"]) == digest


async def test_a_table_that_is_not_declared_is_refused_and_nothing_is_made(
    tables: TableStore, notes: MakeTables
) -> None:
    step = f"{PLAIN}; CREATE TABLE notes_more (id bigint PRIMARY KEY)"
    with pytest.raises(InvalidOption, match="notes_more"):
        await tables.make(notes({"0001_begin": step}, NOTES))
    assert await tables.versions() == {}
    assert await tables.columns(NOTES) == {}


async def test_tables_can_be_made_as_they_were_at_a_version(
    tables: TableStore, notes: MakeTables
) -> None:
    files = {
        "0001_begin": PLAIN,
        "0002_more": "CREATE TABLE notes_more (id bigint PRIMARY KEY)",
    }
    declared = notes(files, NOTES, Table("notes_more", ("id",)))
    assert await tables.make(declared, version=1) == (0, 1)
    assert await tables.columns(declared.tables[1]) == {}
    assert await tables.make(declared) == (1, 2)


async def test_roles_made_after_the_tables_get_their_rights_from_the_next_owner(
    logins: Logins, admin: Connection, notes: MakeTables
) -> None:
    owner = logins.owner()
    declared = notes({"0001_begin": PLAIN}, NOTES)
    async with opened(owner) as tables:
        await tables.make(declared)
        await tables.put(NOTES, [{"id": 1, "text": "a"}])
    address = address_of(owner)
    for role in (address.worker_role, address.tenant_role):
        admin.execute(f"CREATE ROLE {role}".encode())
    async with opened(owner):
        pass
    worker = logins.make("", f"GRANT {address.worker_role} TO {{}}")
    async with opened(worker) as tables:
        with pytest.raises(StoreError, match="penstock migrate"):
            await tables.make(declared)
    async with opened(owner) as tables:
        await tables.make(declared)
    async with opened(worker) as tables:
        await tables.make(declared)
        assert await tables.count(NOTES) == 1
        assert await tables.versions() == {"notes": 1}
