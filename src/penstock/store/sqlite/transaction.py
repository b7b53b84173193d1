"""One transaction in progress on an apsw connection, which holds the write lock of the file."""

from collections.abc import Collection, Iterable
from typing import Any

import apsw
from msgspec.json import encode

from penstock.store.relational.transaction import Bindings, Transaction
from penstock.store.sqlite.queries import queries


class SqliteTransaction(Transaction):
    """What every operation of this store gets; a list of values travels as JSON."""

    __slots__ = ("_queries", "connection")

    def __init__(self, connection: apsw.Connection, now: int, monotonic: int) -> None:
        super().__init__(now, monotonic)
        self.connection = connection
        self._queries = queries()

    def run(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""
        self.connection.execute(self._queries[name], bindings)
        return self.connection.changes()

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""
        return self.connection.execute(self._queries[name], bindings).fetchall()

    def row(self, name: str, bindings: Bindings = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""
        return self.connection.execute(self._queries[name], bindings).fetchone()

    def many(self, name: str, rows: Iterable[Bindings]) -> int:
        """Run a named query for every row; the number of rows it changed in all."""
        before = self.connection.total_changes()
        self.connection.executemany(self._queries[name], rows)
        return self.connection.total_changes() - before

    def savepoint(self) -> "SqliteSavepoint":
        """Begin a nested transaction."""
        return SqliteSavepoint(self.connection)

    def listed(self, values: Collection[Any]) -> str:
        """A list for `json_each`."""
        return encode(list(values)).decode()

    def lock(self, *names: str) -> None:
        """Nothing to do: the write lock keeps everybody out."""


class SqliteSavepoint:
    """A nested transaction that an exception, or `undo()`, takes back."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> "SqliteSavepoint":
        self._connection.execute("SAVEPOINT operation")
        return self

    def undo(self) -> None:
        """Take back what was done since the savepoint."""
        self._connection.execute("ROLLBACK TO operation")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A full disk or an I/O error may have ended the whole transaction already.
        if not self._connection.in_transaction:
            return
        if kind is not None:
            self.undo()
        self._connection.execute("RELEASE operation")
