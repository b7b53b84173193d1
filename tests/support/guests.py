"""Connections of every library whose transactions an enqueue joins, all used in the same way."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session


class Guest(ABC):
    """A connection in a transaction: what to pass to an enqueue, and what its owner does."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    async def execute(self, statement: str) -> Any:
        """Run a statement; the first value that it gives, if it gives one."""

    async def commit(self) -> None:
        """Commit."""
        await self.connection.commit()

    async def rollback(self) -> None:
        """Roll back."""
        await self.connection.rollback()


class Psycopg(Guest):
    async def execute(self, statement: str) -> Any:
        cursor = self.connection.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()


class AsyncPsycopg(Guest):
    async def execute(self, statement: str) -> Any:
        cursor = await self.connection.execute(statement)
        return (await cursor.fetchone())[0] if cursor.description else None


class Asyncpg(Guest):
    async def begin(self) -> None:
        self._transaction = self.connection.transaction()
        await self._transaction.start()

    async def execute(self, statement: str) -> Any:
        return await self.connection.fetchval(statement)

    async def commit(self) -> None:
        await self._transaction.commit()
        await self.begin()

    async def rollback(self) -> None:
        await self.end()
        await self.begin()

    async def end(self) -> None:
        """Roll back, and begin no other transaction."""
        await self._transaction.rollback()


class Alchemy(Psycopg):
    connection: Session | Connection

    async def execute(self, statement: str) -> Any:
        connection = self.connection
        joined = connection.connection() if isinstance(connection, Session) else connection
        result = joined.exec_driver_sql(statement)
        return result.scalar() if result.returns_rows else None


class AsyncAlchemy(Guest):
    connection: AsyncSession | AsyncConnection

    async def execute(self, statement: str) -> Any:
        connection = self.connection
        joined = (
            await connection.connection() if isinstance(connection, AsyncSession) else connection
        )
        result = await joined.exec_driver_sql(statement)
        return result.scalar() if result.returns_rows else None


Opened = AbstractAsyncContextManager[Guest]


@asynccontextmanager
async def _psycopg(url: str) -> AsyncIterator[Guest]:
    with closing(psycopg.connect(url)) as connection:
        yield Psycopg(connection)


@asynccontextmanager
async def _async_psycopg(url: str) -> AsyncIterator[Guest]:
    connection = await psycopg.AsyncConnection.connect(url)
    try:
        yield AsyncPsycopg(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Guest]:
    connection = await asyncpg.connect(url)
    guest = Asyncpg(connection)
    await guest.begin()
    try:
        yield guest
    finally:
        await guest.end()
        await connection.close()


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[Guest]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
        connection = await pool.acquire()
        guest = Asyncpg(connection)
        await guest.begin()
        try:
            yield guest
        finally:
            await guest.end()
            await pool.release(connection)


def _alchemy(kind: Callable[[Any], Any]) -> Callable[[str], Opened]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Guest]:
        engine = create_engine(_with_driver(url, "psycopg"), pool_size=1, max_overflow=0)
        try:
            with kind(engine) as connection:
                yield Alchemy(connection)
        finally:
            engine.dispose()

    return opened


def _async_alchemy(kind: Callable[[Any], Any], driver: str) -> Callable[[str], Opened]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Guest]:
        engine = create_async_engine(_with_driver(url, driver), pool_size=1, max_overflow=0)
        try:
            async with kind(engine) as connection:
                yield AsyncAlchemy(connection)
        finally:
            await engine.dispose()

    return opened


def _with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


GUESTS: dict[str, Callable[[str], Opened]] = {
    "psycopg": _psycopg,
    "psycopg-async": _async_psycopg,
    "asyncpg": _asyncpg,
    "asyncpg-pool": _asyncpg_pool,
    "Session": _alchemy(Session),
    "Connection": _alchemy(lambda engine: engine.connect()),
    "AsyncSession-psycopg": _async_alchemy(AsyncSession, "psycopg"),
    "AsyncSession-asyncpg": _async_alchemy(AsyncSession, "asyncpg"),
    "AsyncConnection-psycopg": _async_alchemy(lambda engine: engine.connect(), "psycopg"),
    "AsyncConnection-asyncpg": _async_alchemy(lambda engine: engine.connect(), "asyncpg"),
}
