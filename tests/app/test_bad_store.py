"""A store that cannot be used says why, in a sentence of its own; `tests/store` has the details."""

import os
import sqlite3
from pathlib import Path

import apsw
import pytest

from penstock import Penstock
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import (
    ForeignHandle,
    NotAPenstockStore,
    SchemaTooNew,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreIsDirectory,
    StoreReadOnly,
    StoreUnavailable,
)


async def _open(path: Path) -> StoreError:
    with pytest.raises(StoreError) as refused:
        async with Penstock(f"sqlite:///{path}"):
            pass
    assert str(path) in str(refused.value)
    return refused.value


async def test_a_directory_is_no_store(tmp_path: Path) -> None:
    assert isinstance(await _open(tmp_path), StoreIsDirectory)


async def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert isinstance(await _open(tmp_path / "missing" / "work.db"), StoreUnavailable)


async def test_a_file_that_is_no_database_is_damaged_or_something_else(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    path.write_bytes(b"this is a diary\n" * 1000)
    assert isinstance(await _open(path), StoreCorrupt | NotAPenstockStore)


async def test_a_damaged_store_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Penstock(f"sqlite:///{path}"):
        pass
    content = bytearray(path.read_bytes())
    content[100:] = os.urandom(len(content) - 100)
    path.write_bytes(content)
    assert isinstance(await _open(path), StoreCorrupt)


async def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Penstock(f"sqlite:///{path}"):
        pass
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE penstock_meta SET value = 999 WHERE name = 'schema'")
    connection.close()
    assert isinstance(await _open(path), SchemaTooNew)


async def test_a_database_whose_tables_would_collide_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE jobs (title)")
    connection.close()
    assert isinstance(await _open(path), NotAPenstockStore)


async def test_a_file_open_through_another_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Penstock(f"sqlite:///{path}"):
        pass
    connection = sqlite3.connect(path)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    try:
        assert isinstance(await _open(path), ForeignHandle)
    finally:
        connection.close()


async def test_a_read_only_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Penstock(f"sqlite:///{path}"):
        pass
    path.chmod(0o444)
    assert isinstance(await _open(path), StoreReadOnly)


@pytest.mark.parametrize(
    "url", ["work.db", "sqlite://work.db", "sqlite:///", "mysql://host/db", "", "sqlite:"]
)
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption, match="url"):
        _ = Penstock(url).store


async def test_an_application_that_is_not_open_says_so(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path / 'work.db'}")

    @app.job
    async def task() -> None: ...

    with pytest.raises(StoreClosed, match="async with app"):
        await task.enqueue()
    async with app:
        await task.enqueue()
    with pytest.raises(StoreClosed):
        await app.find()


async def test_opening_twice_and_closing_once_leaves_it_open(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path / 'work.db'}")
    async with app:
        async with app:
            pass
        assert await app.find() == []
    await app.close()
