"""One transaction in progress: a connection, the store's time, and the named queries."""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from penstock.store.sqlite.queries import queries

Bindings = tuple[Any, ...] | dict[str, Any]


class Transaction:
    """What every operation of this store gets; `now` is wall time, `monotonic` times leases."""

    __slots__ = ("_queries", "changed", "connection", "monotonic", "now")

    def __init__(self, connection: apsw.Connection, now: int, monotonic: int) -> None:
        self.connection = connection
        self.now = now
        self.monotonic = monotonic
        self.changed = False
        self._queries = queries()

    def run(self, name: str, bindings: Bindings = ()) -> apsw.Cursor:
        """Run a named query."""
        return self.connection.execute(self._queries[name], bindings)

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""
        return self.run(name, bindings).fetchall()

    def row(self, name: str, bindings: Bindings = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""
        return self.run(name, bindings).fetchone()

    def value(self, name: str, bindings: Bindings = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.row(name, bindings)
        return None if row is None else row[0]

    def many(self, name: str, rows: Iterable[Bindings]) -> int:
        """Run a named query for every row; the number of rows it changed."""
        before = self.connection.total_changes()
        self.connection.executemany(self._queries[name], rows)
        return self.connection.total_changes() - before

    def fenced(self, name: str, rows: Sequence[Bindings]) -> list[bool]:
        """Run a fenced update for every row; which of them still held the lease."""
        with Savepoint(self.connection) as savepoint:
            if self.many(name, rows) == len(rows):
                return [True] * len(rows)
            savepoint.undo()
        return [self.many(name, (row,)) == 1 for row in rows]


def readable(stored: bytes) -> str:
    """Text that a hand may have edited: one row that is not UTF-8 must not end a whole query."""
    return stored.decode("utf-8", "replace")


class Savepoint:
    """A nested transaction that an exception, or `undo()`, takes back."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> "Savepoint":
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
