"""From a session or a connection of SQLAlchemy to the driver's connection below it."""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from penstock.store.postgres.foreign.bridge import Bridge
from penstock.store.postgres.foreign.driver import CannotJoin, failed

_ASYNC = "sqlalchemy.ext.asyncio"
# Begins the transaction of the driver where SQLAlchemy has only noted that there is to be one.
_BEGIN = "SELECT 1"
_FAILED = "25P02"
_DRIVERS = "use the driver psycopg or asyncpg"
_PASS = "pass a Session, an AsyncSession, a Connection or an AsyncConnection"


def below(connection: object, bridge: Bridge) -> object:
    """The connection of psycopg or asyncpg, with the transaction begun."""
    what = f"SQLAlchemy's {type(connection).__name__}"
    modules = {kind.__module__ for kind in type(connection).__mro__}
    if modules & {"sqlalchemy.orm.scoping", f"{_ASYNC}.scoping"}:
        advice = "pass the session itself, made by calling it: `connection=session()`"
        raise CannotJoin(f"{what}, which may stand for another session in another thread", advice)
    try:
        if any(module.startswith(_ASYNC) for module in modules):
            return _below_async(connection, what, bridge)
        return _below(connection, what)
    except SQLAlchemyError as error:
        if getattr(getattr(error, "orig", None), "sqlstate", None) == _FAILED:
            raise failed(what) from None
        said = str(error).splitlines()[0].rstrip(".")
        raise CannotJoin(f"{what} ({said})", "pass one that is open and works") from error


def _below(connection: object, what: str) -> object:
    if isinstance(connection, Session):
        _refuse_dialect(connection.get_bind().dialect, what, may_be_async=False)
        connection = connection.connection()
    if not isinstance(connection, Connection):
        raise CannotJoin(what, _PASS)
    _refuse_dialect(connection.dialect, what, may_be_async=False)
    connection.exec_driver_sql(_BEGIN)
    return connection.connection.driver_connection


def _below_async(connection: object, what: str, bridge: Bridge) -> object:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

    async def begin() -> object:
        joined = connection
        if isinstance(joined, AsyncSession):
            _refuse_dialect(joined.get_bind().dialect, what, may_be_async=True)
            joined = await joined.connection()
        if not isinstance(joined, AsyncConnection):
            raise CannotJoin(what, _PASS)
        _refuse_dialect(joined.dialect, what, may_be_async=True)
        await joined.exec_driver_sql(_BEGIN)
        return (await joined.get_raw_connection()).driver_connection

    return bridge.run_surely(begin)


def _refuse_dialect(dialect: Any, what: str, *, may_be_async: bool) -> None:
    if dialect.name != "postgresql":
        raise CannotJoin(f"{what} on {dialect.name}", "pass one on the store's own database")
    if dialect.driver not in ("psycopg", "psycopg_async", "asyncpg"):
        raise CannotJoin(f"{what} with the driver {dialect.driver}", _DRIVERS)
    if dialect.is_async and not may_be_async:
        inside = f"{what} inside of an asynchronous one"
        raise CannotJoin(inside, "pass the AsyncSession or the AsyncConnection itself")
