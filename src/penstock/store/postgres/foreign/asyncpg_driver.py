"""Connections of asyncpg, also one that a pool has handed out."""

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar, cast

import asyncpg  # type: ignore[import-untyped]
import psycopg

from penstock.store.postgres.foreign.bridge import Bridge
from penstock.store.postgres.foreign.driver import KINDS, CannotJoin, Driver
from penstock.store.postgres.queries import numbered_queries
from penstock.store.relational.transaction import Bindings

T = TypeVar("T")


class AsyncpgConnection(Protocol):
    """The part of `asyncpg.Connection` that is used here."""

    def is_closed(self) -> bool:
        """Whether it is closed."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        ...

    def execute(self, query: str, *arguments: Any) -> Awaitable[str]:
        """Run a statement; its status, such as `INSERT 0 1`."""
        ...

    def fetch(
        self, query: str, *arguments: Any, record_class: type[Any]
    ) -> Awaitable[list[tuple[Any, ...]]]:
        """Run a statement; its rows."""
        ...


def asyncpg_driver(connection: Any, bridge: Bridge) -> "AsyncpgDriver":
    """The driver for something made by asyncpg, if it is a connection."""
    if not isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
        raise CannotJoin(f"asyncpg's {type(connection).__name__}", KINDS)
    return AsyncpgDriver(cast("AsyncpgConnection", connection), bridge)


class AsyncpgDriver(Driver):
    """`asyncpg.Connection`."""

    kind = "an asyncpg connection"

    def __init__(self, connection: AsyncpgConnection, bridge: Bridge) -> None:
        self._connection = connection
        self._bridge = bridge

    def refuse_unfit(self) -> None:
        """Raise CannotJoin unless there is a transaction to join."""
        try:
            closed = self._connection.is_closed()
            begun = not closed and self._connection.is_in_transaction()
        except asyncpg.InterfaceError:
            what = f"{self.kind} that its pool has taken back"
            raise CannotJoin(what, "enqueue while you have it") from None
        if closed:
            raise CannotJoin(f"{self.kind} that is closed", "pass one that is open")
        if getattr(self._connection, "_loop", self._bridge.loop) is not self._bridge.loop:
            what = f"{self.kind} that belongs to another event loop"
            raise CannotJoin(what, "await app.enqueue(…) there instead of calling app.sync")
        if not begun:
            what = f"{self.kind} without a transaction"
            raise CannotJoin(what, "use `async with connection.transaction():`")

    def say(self, statement: str) -> None:
        """Run a statement about the transaction itself, to the end whatever happens."""

        async def say() -> None:
            await _as_psycopg(self._connection.execute(statement))

        self._bridge.run_surely(say)

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""
        query, arguments = _numbered(name, bindings)

        async def ask() -> list[tuple[Any, ...]]:
            fetching = self._connection.fetch(query, *arguments, record_class=asyncpg.Record)
            return [tuple(row) for row in await _as_psycopg(fetching)]

        return self._bridge.run(ask)

    def change(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""
        query, arguments = _numbered(name, bindings)

        async def change() -> int:
            status = await _as_psycopg(self._connection.execute(query, *arguments))
            return int(status.rpartition(" ")[2])

        return self._bridge.run(change)


def _numbered(name: str, bindings: Bindings) -> tuple[str, list[Any]]:
    query, names = numbered_queries()[name]
    values = list(bindings) if isinstance(bindings, tuple) else [bindings[n] for n in names]
    return query, values


async def _as_psycopg(answer: Awaitable[T]) -> T:
    """The answer, or the error that psycopg would have raised."""
    try:
        return await answer
    except asyncpg.PostgresError as error:
        raise _same(str(getattr(error, "sqlstate", "")), str(error)) from error
    except asyncpg.InterfaceError as error:
        raise psycopg.InterfaceError(str(error)) from error
    except TimeoutError as error:
        raise psycopg.errors.QueryCanceled("it took longer than command_timeout") from error
    except OSError as error:
        raise psycopg.OperationalError(str(error)) from error


def _same(sqlstate: str, words: str) -> psycopg.Error:
    try:
        return psycopg.errors.lookup(sqlstate)(words)
    except KeyError:
        return psycopg.DatabaseError(f"{sqlstate}: {words}")
