"""Databases for tests on one PostgreSQL server: new ones, and stores that are used in turn.

To copy a migrated database costs a hundred times what it costs to empty the few rows of a test, and
to make the tables of an extension as much as many a test of it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from penstock.extension import Tables
from penstock.store.open import open_store
from proof.servers import create_database, drop_database
from tests.support.sessions import Sessions

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'penstock'"
# What followers of changes have the store install.
TRIGGERS = """
SELECT tgname FROM pg_trigger WHERE tgrelid = 'penstock.jobs'::regclass AND NOT tgisinternal
"""
COLUMNS = """
SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'penstock'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
  AND NOT attisdropped
"""
INDEXES = """
SELECT relname FROM pg_class WHERE relnamespace = 'penstock'::regnamespace AND relkind = 'i'
"""
SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'penstock'"
PUT_SEQUENCE = "SELECT setval(format('penstock.%%I', %s::text), coalesce(%s, 1), %s)"
SEND_OTHERS_AWAY = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(%s)
"""


class First(NamedTuple):
    """A store as it was made."""

    rows: Mapping[str, bytes]
    columns: set[tuple[str, str]]
    indexes: set[str]
    sequences: list[tuple[str, int | None]]


class Databases:
    """Makes databases with names of their own, hands out empty stores and drops it all."""

    def __init__(self, server_url: str) -> None:
        self._server = server_url
        self._made: list[str] = []
        self._first: dict[str, First] = {}
        self._idle: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._of: dict[str, tuple[str, ...]] = {}
        self._cleaners: dict[str, psycopg.Connection] = {}
        self._sessions = Sessions()

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

    def take_store(self, *tables: Tables) -> str:
        """A database that holds an empty store, with these tables of extensions, for data only."""
        of = tuple(each.extension for each in tables)
        while self._idle[of]:
            url = self._idle[of].pop()
            if self._empty(url):
                return url
            self._cleaners.pop(url).close()
            self._sessions.forget(_name(url))
            self.drop(url)
        url = self.create()
        # In a thread: the test that asks may run on an event loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _migrate(url, tables)).result()
        self._first[url], self._of[url] = _look(url), of
        self._sessions.keep(_name(url))
        return url

    def give_back(self, url: str) -> None:
        """Let another test use this store."""
        self._idle[self._of[url]].append(url)

    def close(self) -> None:
        """Remove all databases that are left."""
        self._sessions.close()
        for cleaner in self._cleaners.values():
            cleaner.close()
        for name in self._made:
            drop_database(self._server, name)

    def _empty(self, url: str) -> bool:
        """Make a store as it was first; False if a test has taken away some of its schema."""
        staying = self._sessions.pids(_name(url))
        try:
            return _put_back(self._cleaner(url), self._first[url], staying)
        except psycopg.OperationalError:
            # A test may have ended every session, this one too.
            self._cleaners.pop(url).close()
            return _put_back(self._cleaner(url), self._first[url], staying)

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


async def _migrate(url: str, tables: Sequence[Tables]) -> None:
    store = open_store(url)
    await store.open()
    for each in tables:
        assert store.tables is not None
        await store.tables.make(each)
    await store.close()


def _look(url: str) -> First:
    with psycopg.connect(url) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        return First(
            {name: _copy_out(connection, name) for name in tables},
            set(connection.execute(COLUMNS).fetchall()),
            {name for (name,) in connection.execute(INDEXES)},
            connection.execute(SEQUENCES).fetchall(),
        )


def _copy_out(connection: psycopg.Connection, table: str) -> bytes:
    reading = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(_table(table))
    with connection.cursor() as cursor, cursor.copy(reading) as copy:
        return b"".join(copy)


def _put_back(connection: psycopg.Connection, first: First, staying: list[int]) -> bool:
    with connection.transaction():
        connection.execute(SEND_OTHERS_AWAY, (staying,))
        if not first.columns <= set(connection.execute(COLUMNS, prepare=True).fetchall()):
            return False
        # Neither foreign keys nor triggers have a say in this.
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute(_delete_all(first.rows), prepare=True)
        _drop_what_is_new(connection, first)
        for table, rows in first.rows.items():
            if rows:
                writing = sql.SQL("COPY {} FROM STDIN").format(_table(table))
                with connection.cursor() as cursor, cursor.copy(writing) as copy:
                    copy.write(rows)
        for name, last in first.sequences:
            connection.execute(PUT_SEQUENCE, (name, last, last is not None))
    return True


def _delete_all(tables: Iterable[str]) -> sql.Composed:
    """One statement, so that the server plans it once for a session."""
    deletes = [
        sql.SQL("d{} AS (DELETE FROM {})").format(sql.Literal(number), _table(table))
        for number, table in enumerate(tables)
    ]
    return sql.SQL("WITH {} SELECT").format(sql.SQL(", ").join(deletes))


def _drop_what_is_new(connection: psycopg.Connection, first: First) -> None:
    """Drop triggers, tables of other extensions and indexes; some go with what they are part of."""
    for (trigger,) in connection.execute(TRIGGERS, prepare=True).fetchall():
        name = sql.Identifier(trigger)
        connection.execute(sql.SQL("DROP TRIGGER {} ON penstock.jobs").format(name))
    for (table,) in connection.execute(TABLES, prepare=True).fetchall():
        if table not in first.rows:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(_table(table)))
    for (index,) in connection.execute(INDEXES, prepare=True).fetchall():
        if index not in first.indexes:
            connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(_table(index)))


def _table(name: str) -> sql.Identifier:
    return sql.Identifier("penstock", name)


def _name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
