"""Which connections are refused, with which sentence, and what the others may have set."""

import asyncio
import json
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.string import StrDumper
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.ext.asyncio import create_async_engine as create_async
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from penstock.model.job import NewJob
from penstock.model.store_errors import ForeignConnection, StoreClosed
from penstock.store.contract import JobFilter, Store
from penstock.store.postgres.queries import number_placeholders
from tests.support.databases import Databases
from tests.support.guests import GUESTS, Guest

MAIL = NewJob(id="0", type="mail", key="welcome", payload='{"to": "\u0141ucja"}')


async def refused(store: Store, connection: object, sentence: str) -> None:
    with pytest.raises(ForeignConnection, match=sentence):
        await store.jobs.enqueue([MAIL], connection=connection)
    assert await store.reader.find(JobFilter()) == []


class TestRefusals:
    async def test_a_connection_to_another_database_is_refused(
        self, store: Store, databases: Databases
    ) -> None:
        other = databases.take_store()
        for opened in GUESTS.values():
            async with opened(other) as guest:
                await refused(store, guest.connection, "which is not the store's database")
                assert await guest.execute("SELECT 1") == 1
        databases.give_back(other)

    async def test_a_transaction_that_has_failed_is_refused(
        self, store: Store, guest: Guest
    ) -> None:
        with pytest.raises(Exception, match="division by zero"):
            await guest.execute("SELECT 1 / 0")
        await refused(store, guest.connection, "whose transaction has failed; roll it back first")
        await guest.rollback()
        [answer] = await store.jobs.enqueue([MAIL], connection=guest.connection)
        assert answer.created

    async def test_a_transaction_that_may_only_read_is_refused(
        self, store: Store, guest: Guest
    ) -> None:
        await guest.rollback()
        await guest.execute("SET TRANSACTION READ ONLY")
        await refused(store, guest.connection, "may only read; begin one that may write")

    async def test_autocommit_without_a_transaction_is_refused(self, store: Store) -> None:
        with psycopg.connect(store.url, autocommit=True) as connection:
            await refused(store, connection, r"autocommit.*with connection\.transaction\(\)")
            with connection.transaction():
                await store.jobs.enqueue([MAIL], connection=connection)
        assert len(await store.reader.find(JobFilter())) == 1

    async def test_asynchronous_autocommit_without_a_transaction_is_refused(
        self, store: Store
    ) -> None:
        opening = psycopg.AsyncConnection.connect(store.url, autocommit=True)
        async with await opening as connection:
            await refused(store, connection, r"autocommit.*async with connection\.transaction\(\)")

    async def test_asyncpg_without_a_transaction_is_refused(self, store: Store) -> None:
        connection = await asyncpg.connect(store.url)
        await refused(store, connection, "an asyncpg connection without a transaction")
        await connection.close()
        await refused(store, connection, "an asyncpg connection that is closed")

    @pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
    async def test_sqlalchemy_in_autocommit_is_refused(self, store: Store, driver: str) -> None:
        url = store.url.replace("postgresql", f"postgresql+{driver}")
        engine = create_async(url, isolation_level="AUTOCOMMIT")
        async with AsyncSession(engine) as session:
            await refused(store, session, "without a transaction")
        await engine.dispose()

    async def test_closed_connections_are_refused(self, store: Store) -> None:
        closed = psycopg.connect(store.url)
        closed.close()
        await refused(store, closed, "a psycopg connection that is closed")
        async_closed = await psycopg.AsyncConnection.connect(store.url)
        await async_closed.close()
        await refused(store, async_closed, "an asynchronous psycopg connection that is closed")
        engine = create_engine(store.url.replace("postgresql", "postgresql+psycopg"))
        connection = engine.connect()
        connection.close()
        await refused(store, connection, r"SQLAlchemy's Connection \(This Connection is closed\)")
        engine.dispose()

    async def test_a_connection_that_went_back_to_its_pool_is_refused(self, store: Store) -> None:
        async with asyncpg.create_pool(store.url, min_size=1, max_size=1) as pool:
            await refused(store, pool, "asyncpg's Pool; pass a connection of")
            connection = await pool.acquire()
            await pool.release(connection)
            await refused(store, connection, "that its pool has taken back")

    async def test_pipeline_mode_is_refused(self, store: Store) -> None:
        with psycopg.connect(store.url) as connection, connection.pipeline():
            await refused(store, connection, "in pipeline mode")

    async def test_an_asyncpg_connection_of_another_event_loop_is_refused(
        self, store: Store
    ) -> None:
        async def open_elsewhere() -> Any:
            return await asyncpg.connect(store.url)

        loop = asyncio.new_event_loop()
        connection = await asyncio.to_thread(loop.run_until_complete, open_elsewhere())
        await refused(store, connection, "belongs to another event loop")
        await asyncio.to_thread(loop.run_until_complete, connection.close())
        loop.close()

    async def test_sessions_that_stand_for_others_are_refused(self, store: Store) -> None:
        engine = create_engine(store.url.replace("postgresql", "postgresql+psycopg"))
        await refused(store, scoped_session(sessionmaker(engine)), "pass the session itself")
        await refused(store, engine, "SQLAlchemy's Engine; pass a Session")
        sessions = async_sessionmaker(create_async(store.url.replace(":", "+asyncpg:", 1)))
        standing = async_scoped_session(sessions, asyncio.current_task)
        await refused(store, standing, "pass the session itself")
        await refused(store, sessions, "SQLAlchemy's async_sessionmaker; pass a Session")

    async def test_a_session_without_a_database_is_refused(self, store: Store) -> None:
        with Session() as session:
            await refused(store, session, r"SQLAlchemy's Session \(.*pass one that is open")

    async def test_a_session_inside_of_an_asynchronous_one_is_refused(self, store: Store) -> None:
        engine = create_async(store.url.replace(":", "+asyncpg:", 1))
        async with AsyncSession(engine) as session:
            await refused(store, session.sync_session, "pass the AsyncSession or the Async")
        await engine.dispose()

    async def test_sqlalchemy_on_another_kind_of_database_is_refused(self, store: Store) -> None:
        engine = create_engine("sqlite://")
        with Session(engine) as session:
            await refused(store, session, "SQLAlchemy's Session on sqlite")
        engine.dispose()

    @pytest.mark.parametrize(
        "thing", [object(), "postgresql://", 7], ids=["object", "text", "number"]
    )
    async def test_anything_else_is_refused(self, store: Store, thing: object) -> None:
        await refused(store, thing, f"{type(thing).__name__}; pass a connection of psycopg")

    async def test_a_closed_store_says_that_it_is_closed(self, store: Store) -> None:
        with psycopg.connect(store.url) as connection:
            await store.close()
            with pytest.raises(StoreClosed):
                await store.jobs.enqueue([MAIL], connection=connection)


class NullIfEmpty(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj) if obj else None


class TestWhatTheCallerHasSet:
    async def test_a_psycopg_connection_may_have_rows_texts_and_an_encoding_of_its_own(
        self, store: Store
    ) -> None:
        connection = psycopg.connect(store.url, row_factory=dict_row, client_encoding="LATIN1")
        connection.adapters.register_dumper(str, NullIfEmpty)
        with connection:
            await store.jobs.enqueue([MAIL], connection=connection)
            batch = [NewJob(id=f"b{place}", type="mail") for place in range(20)]
            await store.jobs.enqueue(batch, connection=connection)
            assert connection.info.encoding == "iso8859-1"
        [kept] = await store.reader.get(["0"])
        assert kept.payload == MAIL.payload

    async def test_an_asyncpg_connection_may_encode_documents_by_itself(self, store: Store) -> None:
        connection = await asyncpg.connect(store.url)
        for kind in ("json", "jsonb"):
            await connection.set_type_codec(
                kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
            )
        async with connection.transaction():
            await store.jobs.enqueue([MAIL], connection=connection)
        await connection.close()
        [kept] = await store.reader.get(["0"])
        assert kept.payload == MAIL.payload


@pytest.mark.parametrize(
    ("written", "numbered", "names"),
    [
        ("SELECT ? WHERE a = ?", "SELECT $1 WHERE a = $2", ["", ""]),
        ("at(:now), :a::text, :now", "at($1), $2::text, $1", ["now", "a"]),
        (
            "?::json, ?::jsonb, ?::text[]",
            "$1::text::json, $2::text::jsonb, $3::text[]",
            ["", "", ""],
        ),
    ],
)
def test_placeholders_are_numbered(written: str, numbered: str, names: list[str]) -> None:
    assert number_placeholders(written) == (numbered, names)
