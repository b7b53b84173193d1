"""One transaction in progress on a psycopg connection, at READ COMMITTED.

Every statement sees what others committed before it began, so a query that decides something
locks the rows it decides on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import psycopg
from msgspec.json import encode

from penstock.store.postgres.connect import Connection
from penstock.store.postgres.queries import queries
from penstock.store.relational.transaction import Bindings, Transaction

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || %s, 0))"


class PostgresTransaction(Transaction):
    """What every operation of this store gets; a list of values travels as an array."""

    __slots__ = ("_queries", "connection")

    def __init__(self, connection: Connection, now: int, monotonic: int) -> None:
        super().__init__(now, monotonic)
        self.connection = connection
        self._queries: Mapping[str, bytes] = queries()

    def run(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""
        return self._execute(name, bindings).rowcount

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""
        return self._execute(name, bindings).fetchall()

    def row(self, name: str, bindings: Bindings = ()) -> tuple[Any, ...] | None:
        """Return the first row, or `None`."""
        return self._execute(name, bindings).fetchone()

    def many(self, name: str, rows: Iterable[Bindings]) -> int:
        """Run a named query for every row; the number of rows it changed in all."""
        given = list(rows)
        if len(given) == 1:
            return self.run(name, given[0])
        if not given:
            return 0
        together = self._together(name, given)
        if together is not None:
            return self._execute(*together).rowcount
        with self.connection.cursor() as cursor:
            cursor.executemany(self._queries[name], given)
            return cursor.rowcount

    def _together(self, name: str, rows: Sequence[Bindings]) -> tuple[str, Bindings] | None:
        if self._queries is queries():
            return rows_together(self._queries, name, rows)
        if f"{name}_columns" not in self._queries:
            return None
        return f"{name}_columns", tuple(map(list, zip(*rows, strict=True)))

    def using(self, queries: Mapping[str, bytes]) -> "PostgresTransaction":
        """The same transaction with other queries."""
        other = PostgresTransaction(self.connection, self.now, self.monotonic)
        other._queries = queries
        return other

    def savepoint(self) -> "PostgresSavepoint":
        """Begin a nested transaction."""
        return PostgresSavepoint(self.connection)

    def listed(self, values: Collection[Any]) -> list[Any]:
        """A list for `= ANY(…)`."""
        return list(values)

    def lock(self, *names: str) -> None:
        """Keep out every other transaction that locks the same name, until this one ends."""
        self.connection.execute(_LOCK, ("\x1f".join(("", *names)),))

    def _execute(self, name: str, bindings: Bindings) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.connection.execute(self._queries[name], bindings)


def rows_together(
    known: Mapping[str, object], name: str, rows: Sequence[Bindings]
) -> tuple[str, Bindings] | None:
    """The query that does for all rows what the named one does for each, if there is one."""
    if f"{name}_all" not in known:
        return None
    document = encode(rows).decode()
    # A document with a NUL would be refused as a whole; the columns say what is wrong with it.
    return None if "\\u0000" in document else (f"{name}_all", (document,))


class PostgresSavepoint:
    """A nested transaction that an exception, or `undo()`, takes back."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> "PostgresSavepoint":
        self._connection.execute("SAVEPOINT operation")
        return self

    def undo(self) -> None:
        """Take back what was done since the savepoint."""
        self._connection.execute("ROLLBACK TO SAVEPOINT operation")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._connection.broken:
            return
        if kind is not None:
            self.undo()
        self._connection.execute("RELEASE SAVEPOINT operation")
