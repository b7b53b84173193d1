"""An operation that takes one statement and no transaction: one round trip to the server."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from penstock.model.clock import Clock, ServerClock
from penstock.store.postgres.connect import Connection
from penstock.store.postgres.queries import numbered_queries
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.relational.transaction import Bindings

T = TypeVar("T")
Row = tuple[Any, ...]
Question = tuple[str, Bindings]
"""The name of a query and what is bound in it."""


Ended = Callable[["Sent[Any]", bool], None]
"""Called when a trip has ended, and whether by the event loop that watched it."""


class Alone:
    """The time of a statement without a transaction; by the server's clock, none is known yet."""

    __slots__ = ("_hears", "monotonic", "now")

    def __init__(self, clock: Clock) -> None:
        self._hears = clock if isinstance(clock, ServerClock) else None
        self.now = None if self._hears else clock.now()
        self.monotonic = None if self._hears else clock.monotonic()

    def heard(self, now: int) -> None:
        """Pass on the server's time, just received."""
        if self._hears is not None:
            self._hears.heard(now)


class RoundTrip(ABC, Generic[T]):
    """An operation that may run alone, or in a transaction with others."""

    __slots__ = ()

    changes: bool = False
    """Whether others should hear of it, if it ran alone."""

    @abstractmethod
    def ask(self, alone: Alone) -> Question | None:
        """Return the one statement that does it, or None where one is not enough."""

    @abstractmethod
    def answer(self, alone: Alone, rows: list[Row]) -> T | None:
        """Read what the statement gave; None, and nothing done, if it was not enough."""

    @abstractmethod
    def __call__(self, tx: PostgresTransaction) -> T:
        """Do it as a part of a transaction."""


class Sent(Generic[T]):
    """A trip that was sent, and an event loop that watches for its answer.

    It ends with a result or an error; with neither, nothing was done and it must run otherwise.
    """

    def __init__(self, trip: RoundTrip[T], alone: Alone, question: Question, ended: Ended) -> None:
        self.trip = trip
        self.alone = alone
        self.name = question[0].encode()
        self.values = values_of(question)
        self.ended = ended
        self.is_out = False
        self.results: list[PGresult] = []
        self.result: T | None = None
        self.error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._file = -1

    def watch(
        self, loop: asyncio.AbstractEventLoop, file: int, look: Callable[["Sent[T]"], None]
    ) -> None:
        """Have the loop call `look` whenever something has come."""
        # A file of its own: the connection's may be closed, and its number given to another one.
        self._loop, self._file = loop, os.dup(file)
        loop.add_reader(self._file, look, self)

    def unwatch(self) -> None:
        """End that, in the thread of the loop."""
        if self._loop is not None:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._loop = None

    def end(self, *, in_loop: bool) -> None:
        """Tell who waits, from the thread of the loop or from another one."""
        loop = self._loop
        if in_loop:
            self.unwatch()
        elif loop is not None:
            try:
                loop.call_soon_threadsafe(self.unwatch)
            except RuntimeError:  # the loop was closed, and watches nothing any more
                os.close(self._file)
        self.ended(self, in_loop)


def prepare(connection: Connection, name: str) -> None:
    """Have the server know a named query."""
    query, _ = numbered_queries()[name]
    result = connection.pgconn.prepare(name.encode(), query.encode())
    if result.status != ExecStatus.COMMAND_OK:
        raise error_from_result(result)


def values_of(question: Question) -> list[bytes | None]:
    """Return what is bound in a query as the texts that PostgreSQL reads."""
    name, bindings = question
    if isinstance(bindings, tuple):
        return [_text(value) for value in bindings]
    return [_text(bindings[bound]) for bound in numbered_queries()[name][1]]


def rows_of(connection: Connection, results: Sequence[PGresult]) -> list[Row]:
    """Return the rows of a statement, or raise the error that the server answered with."""
    for result in results:
        if result.status != ExecStatus.TUPLES_OK:
            raise error_from_result(result)
    reader = Transformer(connection)
    reader.set_pgresult(results[0])
    return reader.load_rows(0, results[0].ntuples, tuple)


def _text(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        text = value.encode()
        if b"\0" in text:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return text
    if isinstance(value, list | tuple):
        return b"{%b}" % b",".join(_quoted(_text(item) or b"") for item in value)
    return str(value).encode()


def _quoted(item: bytes) -> bytes:
    return b'"%b"' % item.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
