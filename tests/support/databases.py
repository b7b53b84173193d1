"""Databases for tests on one PostgreSQL server: new ones, and stores that are used in turn.

To copy a migrated database costs a hundred times what it costs to empty the few rows of a test.
"""

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from penstock.store.open import open_store
from proof.servers import create_database, drop_database

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'penstock'"
# What followers of changes have the store install.
TRIGGERS = """
SELECT tgname FROM pg_trigger WHERE tgrelid = 'penstock.jobs'::regclass AND NOT tgisinternal
"""
SEND_OTHERS_AWAY = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Databases:
    """Makes databases with names of their own, hands out empty stores and drops it all."""

    def __init__(self, server_url: str) -> None:
        self._server = server_url
        self._made: list[str] = []
        self._first_rows: dict[str, Mapping[str, bytes]] = {}
        self._idle: list[str] = []
        self._cleaners: dict[str, psycopg.Connection] = {}

    def create(self) -> str:
        """A new database with nothing in it."""
        name = f"test_{uuid4().hex}"
        url = create_database(self._server, name)
        self._made.append(name)
        return url

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it."""
        drop_database(self._server, _name(url))
        self._made.remove(_name(url))

    def take_store(self) -> str:
        """A database that holds an empty store, for data only: its schema serves others later."""
        if self._idle:
            url = self._idle.pop()
            self._empty(url)
            return url
        url = self.create()
        # In a thread: the test that asks may run on an event loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _migrate(url)).result()
        self._first_rows[url] = _rows(url)
        return url

    def give_back(self, url: str) -> None:
        """Let another test use this store."""
        self._idle.append(url)

    def close(self) -> None:
        """Remove all databases that are left."""
        for cleaner in self._cleaners.values():
            cleaner.close()
        for name in self._made:
            drop_database(self._server, name)

    def _empty(self, url: str) -> None:
        try:
            _put_back(self._cleaner(url), self._first_rows[url])
        except psycopg.OperationalError:
            # A test may have ended every session, this one too.
            self._cleaners.pop(url).close()
            _put_back(self._cleaner(url), self._first_rows[url])

    def _cleaner(self, url: str) -> psycopg.Connection:
        """A session that stays: in a new one every table would be looked up again."""
        if url not in self._cleaners:
            self._cleaners[url] = psycopg.connect(url, application_name="cleaner")
        return self._cleaners[url]


def cheapen_password(server_url: str) -> None:
    """Hash the server's password once instead of 4,096 times: a test logs in again and again."""
    given = urlsplit(server_url)
    role, password = sql.Identifier(given.username or ""), sql.Literal(given.password)
    with psycopg.connect(server_url) as connection:
        connection.execute("SET scram_iterations = 1")
        connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, password))


async def _migrate(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.close()


def _rows(url: str) -> dict[str, bytes]:
    with psycopg.connect(url) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        return {name: _copy_out(connection, name) for name in tables}


def _copy_out(connection: psycopg.Connection, table: str) -> bytes:
    reading = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(_table(table))
    with connection.cursor() as cursor, cursor.copy(reading) as copy:
        return b"".join(copy)


def _put_back(connection: psycopg.Connection, first_rows: Mapping[str, bytes]) -> None:
    with connection.transaction():
        connection.execute(SEND_OTHERS_AWAY)
        # Neither foreign keys nor triggers have a say in this.
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute(_delete_all(first_rows), prepare=True)
        for (trigger,) in connection.execute(TRIGGERS, prepare=True).fetchall():
            name = sql.Identifier(trigger)
            connection.execute(sql.SQL("DROP TRIGGER {} ON penstock.jobs").format(name))
        for (table,) in connection.execute(TABLES, prepare=True).fetchall():
            if (
                table not in first_rows
            ):  # of an extension, and maybe gone with the one it is part of
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(_table(table)))
        for table, rows in first_rows.items():
            if rows:
                writing = sql.SQL("COPY {} FROM STDIN").format(_table(table))
                with connection.cursor() as cursor, cursor.copy(writing) as copy:
                    copy.write(rows)


def _delete_all(tables: Iterable[str]) -> sql.Composed:
    """One statement, so that the server plans it once for a session."""
    deletes = [
        sql.SQL("d{} AS (DELETE FROM {})").format(sql.Literal(number), _table(table))
        for number, table in enumerate(tables)
    ]
    return sql.SQL("WITH {} SELECT").format(sql.SQL(", ").join(deletes))


def _table(name: str) -> sql.Identifier:
    return sql.Identifier("penstock", name)


def _name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
