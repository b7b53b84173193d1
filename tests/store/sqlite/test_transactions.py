"""An enqueue can join the caller's own transaction, and says where it cannot."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from penstock.model.errors import InvalidOption
from penstock.model.job import NewJob
from penstock.model.store_errors import ForeignConnection, StoreError, TransactionHeld
from penstock.store.contract import JobFilter, Store
from penstock.store.open import open_store
from penstock.store.sqlite.connect import SqliteTransaction

MAIL = NewJob(id="0", type="mail", key="welcome")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/work.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def connection(store: Store) -> AsyncIterator[apsw.Connection]:
    connection = _lent(store)
    connection.execute("CREATE TABLE orders (id INTEGER)")
    yield connection
    connection.close()


def _lent(store: Store) -> apsw.Connection:
    connection = store.connection()
    assert isinstance(connection, apsw.Connection)
    return connection


async def _ids(store: Store) -> list[str]:
    return [job.id for job in await store.reader.find(JobFilter())]


async def test_a_commit_makes_the_job_visible_together_with_the_callers_rows(
    store: Store, connection: apsw.Connection
) -> None:
    connection.execute("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)")
    [answer] = await store.jobs.enqueue([MAIL], connection=connection)
    assert answer.created
    assert await _ids(store) == []
    connection.execute("COMMIT")
    assert await _ids(store) == ["0"]
    assert connection.execute("SELECT count(*) FROM orders").get == 1


async def test_a_rollback_leaves_neither_the_job_nor_its_key(
    store: Store, connection: apsw.Connection
) -> None:
    connection.execute("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)")
    await store.jobs.enqueue([MAIL], connection=connection)
    connection.execute("ROLLBACK")
    assert await _ids(store) == []
    [answer] = await store.jobs.enqueue([NewJob(id="1", type="mail", key="welcome")])
    assert answer.created


async def test_the_callers_commit_wakes_a_subscriber(
    store: Store, connection: apsw.Connection
) -> None:
    subscription = store.subscribe()
    with connection:
        await store.jobs.enqueue([MAIL], connection=connection)
    assert await subscription.wait(10)
    subscription.close()
    assert await _ids(store) == ["0"]


async def test_an_enqueue_without_a_transaction_commits_by_itself(
    store: Store, connection: apsw.Connection
) -> None:
    await store.jobs.enqueue([MAIL], connection=connection)
    assert await _ids(store) == ["0"]


async def test_a_failed_enqueue_leaves_the_callers_transaction_usable(
    store: Store, connection: apsw.Connection
) -> None:
    connection.execute("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)")
    wrong = NewJob(id="1", type="mail", priority=99)
    with pytest.raises(StoreError, match="CHECK"):
        await store.jobs.enqueue([MAIL, wrong], connection=connection)
    connection.execute("COMMIT")
    assert connection.execute("SELECT count(*) FROM orders").get == 1
    assert await _ids(store) == []


async def test_a_plain_enqueue_inside_the_callers_write_transaction_is_refused_at_once(
    store: Store, connection: apsw.Connection
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransactionHeld):
        async with asyncio.timeout(5):
            await store.jobs.enqueue([MAIL])
    connection.execute("ROLLBACK")
    assert [answer.created for answer in await store.jobs.enqueue([MAIL])] == [True]


async def test_every_one_of_several_connections_is_watched(
    store: Store, connection: apsw.Connection
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with closing(_lent(store)), pytest.raises(TransactionHeld):
        async with asyncio.timeout(5):
            await store.jobs.enqueue([MAIL])
    connection.execute("ROLLBACK")


async def test_a_write_transaction_on_another_file_is_no_hindrance(
    connection: apsw.Connection, tmp_path: Path
) -> None:
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    await other.open()
    connection.execute("BEGIN IMMEDIATE")
    [answer] = await other.jobs.enqueue([MAIL])
    connection.execute("ROLLBACK")
    assert answer.created
    await other.close()


async def test_a_batch_without_a_transaction_is_inserted_as_a_whole_or_not_at_all(
    store: Store, connection: apsw.Connection
) -> None:
    wrong = NewJob(id="1", type="mail", priority=99)
    with pytest.raises(StoreError, match="CHECK"):
        await store.jobs.enqueue([MAIL, wrong], connection=connection)
    assert await _ids(store) == []


async def test_another_task_may_enqueue_meanwhile(store: Store) -> None:
    began, enqueued = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        with closing(_lent(store)) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM jobs")
            began.set()
            await enqueued.wait()
            connection.execute("COMMIT")

    holding = asyncio.create_task(hold())
    await began.wait()
    [answer] = await store.jobs.enqueue([MAIL])
    assert answer.created
    enqueued.set()
    await holding


async def test_a_connection_of_the_standard_library_is_refused(
    store: Store, tmp_path: Path
) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "other.db")) as foreign,
        pytest.raises(ForeignConnection, match="sqlite3"),
    ):
        await store.jobs.enqueue([MAIL], connection=foreign)
    assert await _ids(store) == []


async def test_a_connection_to_another_file_is_refused(store: Store, tmp_path: Path) -> None:
    with (
        closing(apsw.Connection(str(tmp_path / "other.db"))) as other,
        pytest.raises(ForeignConnection, match="other"),
    ):
        await store.jobs.enqueue([MAIL], connection=other)


async def test_a_store_in_memory_has_no_connection_to_lend() -> None:
    store = open_store("sqlite:///:memory:")
    await store.open()
    with pytest.raises(InvalidOption):
        store.connection()
    await store.close()


async def test_what_a_trigger_writes_beside_does_not_count_as_changed(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "t.db"))) as connection:
        connection.execute(
            "CREATE TABLE a (x UNIQUE); CREATE TABLE b (x);"
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN INSERT INTO b VALUES (NEW.x); END"
        )
        tx = SqliteTransaction(connection, 0, 0).using(
            {"add": "INSERT OR IGNORE INTO a VALUES (?)"}
        )
        assert tx.many("add", [(1,), (2,), (2,), (3,)]) == 3
        assert tx.many("add", [(4,)]) == 1
        assert tx.many("add", [(4,)]) == 0
        assert tx.many("add", []) == 0
        assert tx.run("add", (5,)) == 1
