"""Connections to the file, and one transaction in progress on one of them."""

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import apsw
from msgspec.json import encode

from penstock.model.clock import Clock
from penstock.store.relational.transaction import Bindings, Transaction, load_queries
from penstock.store.sqlite.errors import translated
from penstock.store.sqlite.files import OpenFile, make_private, refuse_inherited


@cache
def queries() -> dict[str, str]:
    """All named queries."""
    # A payload that a hand has spoilt must not cost the other rows.
    read_as = {"payload": "CAST(payload AS BLOB)", "limit_key": "nullif(limit_key, '')"}
    return load_queries("penstock.store.sqlite", read_as)


BUSY_SECONDS = 30.0
HUNDRED = 100
LONGEST_STEP = 0.0003
WAL_PAGES = 2_000
WAL_BYTES = 32 * 1024 * 1024


def connect(
    path: Path | None, *, read_only: bool = False, kind: type[apsw.Connection] | None = None
) -> apsw.Connection:
    """A connection in WAL mode that loses nothing it has committed (`None` is in memory)."""
    if path is None:
        return apsw.Connection(":memory:")
    refuse_inherited(path)
    if not read_only:
        make_private(path)
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = (kind or apsw.Connection)(str(path), flags)
    connection.set_busy_handler(BusyWait())
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        return connection
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    connection.execute("PRAGMA secure_delete = ON")  # what is erased leaves no bytes behind
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -32768")
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Switch to WAL; SQLite does not wait by itself while another process switches too."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


class BusyWait:
    """Waits for a lock in small steps; SQLite's own steps grow to 100 ms and starve writers."""

    def __init__(self) -> None:
        self.waits = True
        self._started = 0.0

    def __call__(self, tries: int) -> bool:
        """Wait a step; whether to try again."""
        if not self.waits:
            return False
        if tries == 0:
            self._started = time.monotonic()
        time.sleep(min(0.0001 * (tries + 1), LONGEST_STEP))
        return time.monotonic() - self._started < BUSY_SECONDS


class SqliteTransaction(Transaction):
    """What every operation of this store gets; a list of values travels as JSON."""

    __slots__ = ("_queries", "connection")

    def __init__(self, connection: apsw.Connection, now: int, monotonic: int) -> None:
        super().__init__(now, monotonic)
        self.connection = connection
        self._queries: Mapping[str, str] = queries()

    def run(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""
        self.connection.execute(self._queries[name], bindings)
        return self.connection.changes()

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""
        return self.connection.execute(self._queries[name], bindings).fetchall()

    def row(self, name: str, bindings: Bindings = ()) -> tuple[Any, ...] | None:
        """Return the first row, or `None`."""
        return self.connection.execute(self._queries[name], bindings).fetchone()

    def many(self, name: str, rows: Iterable[Bindings]) -> int:
        """Run a named query for every row; the number of rows it changed in all."""
        if f"{name}_hundred" in self._queries:
            return self._by_hundreds(name, list(rows))
        return self._each(name, rows)

    def _by_hundreds(self, name: str, rows: Sequence[Bindings]) -> int:
        """Run the query that takes 100 rows as often as it can, and the other for the rest.

        Between two statements a thread has to wait for Python's lock, within one it has not.
        """
        whole, changed = len(rows) - len(rows) % HUNDRED, 0
        for begin in range(0, whole, HUNDRED):
            together = [value for row in rows[begin : begin + HUNDRED] for value in row]
            changed += self.run(f"{name}_hundred", tuple(together))
        return changed + self._each(name, rows[whole:])

    def _each(self, name: str, rows: Iterable[Bindings]) -> int:
        changed = 0

        def counted() -> Iterator[Bindings]:
            # The next row is asked for when the one before is done. SQLite's own total would count
            # what triggers wrote beside it.
            nonlocal changed
            for row in rows:
                yield row
                changed += self.connection.changes()

        self.connection.executemany(self._queries[name], counted())
        return changed

    def using(self, queries: Mapping[str, str]) -> "SqliteTransaction":
        """The same transaction with other queries."""
        other = SqliteTransaction(self.connection, self.now, self.monotonic)
        other._queries = queries
        return other

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


T = TypeVar("T")


class Readers:
    """A small pool; each question sees one consistent snapshot."""

    def __init__(self, path: Path, clock: Clock, threads: int = 2) -> None:
        self._path = path
        self._file = OpenFile(str(path))
        self._clock = clock
        self._local = threading.local()
        self._open: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="penstock-reader")

    async def run(self, question: Callable[[SqliteTransaction], T]) -> T:
        """Ask in a thread of the pool."""
        refuse_inherited(self._path)  # a forked pool has no threads and would never answer
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self.call, question)

    def call(self, question: Callable[[SqliteTransaction], T]) -> T:
        """Ask in the calling thread."""
        refuse_inherited(self._path)
        self._file.check()
        with translated(str(self._path)):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return question(
                    SqliteTransaction(connection, self._clock.now(), self._clock.monotonic())
                )
            finally:
                self._end(connection)

    def close(self) -> None:
        """Let all connections go."""
        self._pool.shutdown(wait=True)
        for connection in self._open:
            connection.close()
        self._open.clear()

    def _end(self, connection: apsw.Connection) -> None:
        """End the transaction, which an I/O error may have done; or else the connection."""
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        except apsw.Error:
            self._local.connection = None
            with suppress(apsw.Error):
                connection.close(True)
            raise

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._path, read_only=True)
            self._local.connection = connection
            self._open.append(connection)
        return connection
