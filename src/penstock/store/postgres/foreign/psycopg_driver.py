"""Connections of psycopg, synchronous and asynchronous."""

from typing import Any

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row
from psycopg.types.string import StrDumperUnknown, TextLoader

from penstock.store.postgres.foreign.bridge import Bridge
from penstock.store.postgres.foreign.driver import CannotJoin, Driver, failed
from penstock.store.postgres.queries import queries
from penstock.store.relational.transaction import Bindings

Row = tuple[Any, ...]


class PsycopgDriver(Driver):
    """`psycopg.Connection`."""

    kind = "a psycopg connection"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def refuse_unfit(self) -> None:
        """Raise CannotJoin unless there is a transaction to join, or one begins by itself."""
        _refuse_unfit(self._connection, self.kind, "with connection.transaction():")

    def say(self, statement: str) -> None:
        """Run a statement about the transaction itself, to the end whatever happens."""
        self._cursor().execute(statement.encode())

    def rows(self, name: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of a named query."""
        return self._cursor().execute(queries()[name], bindings).fetchall()

    def change(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""
        return self._cursor().execute(queries()[name], bindings).rowcount

    def _cursor(self) -> psycopg.Cursor[Row]:
        cursor = psycopg.Cursor(self._connection, row_factory=tuple_row)
        _speak_plainly(cursor)
        return cursor


class AsyncPsycopgDriver(Driver):
    """`psycopg.AsyncConnection`."""

    kind = "an asynchronous psycopg connection"

    def __init__(self, connection: psycopg.AsyncConnection[Any], bridge: Bridge) -> None:
        self._connection = connection
        self._bridge = bridge

    def refuse_unfit(self) -> None:
        """Raise CannotJoin unless there is a transaction to join, or one begins by itself."""
        _refuse_unfit(self._connection, self.kind, "async with connection.transaction():")

    def say(self, statement: str) -> None:
        """Run a statement about the transaction itself, to the end whatever happens."""

        async def say() -> None:
            await self._cursor().execute(statement.encode())

        self._bridge.run_surely(say)

    def rows(self, name: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of a named query."""

        async def ask() -> list[Row]:
            return await (await self._cursor().execute(queries()[name], bindings)).fetchall()

        return self._bridge.run(ask)

    def change(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""

        async def change() -> int:
            return (await self._cursor().execute(queries()[name], bindings)).rowcount

        return self._bridge.run(change)

    def _cursor(self) -> psycopg.AsyncCursor[Row]:
        cursor = psycopg.AsyncCursor(self._connection, row_factory=tuple_row)
        _speak_plainly(cursor)
        return cursor


def _speak_plainly(cursor: psycopg.Cursor[Row] | psycopg.AsyncCursor[Row]) -> None:
    """Whatever the caller has its texts turned into, ours stay texts."""
    cursor.adapters.register_dumper(str, StrDumperUnknown)
    cursor.adapters.register_loader("text", TextLoader)


def _refuse_unfit(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], kind: str, begin: str
) -> None:
    if connection.closed:
        raise CannotJoin(f"{kind} that is closed", "pass one that is open")
    if connection.pgconn.pipeline_status != pq.PipelineStatus.OFF:
        raise CannotJoin(f"{kind} in pipeline mode", "enqueue before or after the pipeline")
    status = connection.info.transaction_status
    if status == pq.TransactionStatus.INERROR:
        raise failed(kind)
    if status == pq.TransactionStatus.IDLE and connection.autocommit:
        raise CannotJoin(f"{kind} in autocommit without a transaction", f"use `{begin}`")
