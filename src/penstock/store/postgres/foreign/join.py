"""Enqueues in the caller's transaction: committed by the caller, or not at all.

What is set for them is taken back within the same savepoint, so that the caller finds its role,
its search path and its transaction as they were, whether the enqueue succeeded or not.
"""

from collections.abc import Callable
from typing import NamedTuple

import psycopg

from penstock.model.clock import ServerClock
from penstock.model.job import Enqueued
from penstock.model.store_errors import (
    AccessDenied,
    ForeignConnection,
    OtherDatabase,
    StoreUnavailable,
)
from penstock.store.postgres.connect import LOCK_MS, quoted
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.errors import GRANT, translated
from penstock.store.postgres.foreign.bridge import Bridge
from penstock.store.postgres.foreign.driver import KINDS, CannotJoin, Driver, Savepoint
from penstock.store.postgres.foreign.psycopg_driver import AsyncPsycopgDriver, PsycopgDriver
from penstock.store.postgres.foreign.transaction import ForeignTransaction
from penstock.store.postgres.foreign.turns import turn
from penstock.store.postgres.wake_ups import channel_of
from penstock.store.relational.transaction import Transaction

Enqueue = Callable[[Transaction], list[Enqueued]]
_LOOKS_BACK = ("repeatable read", "serializable")


class _Caller(NamedTuple):
    database: str
    server: str
    user: str
    may_use: bool | None
    now: int
    isolation: str
    read_only: bool
    search_path: str
    lock_timeout: str
    client_encoding: str
    role: str
    tenant: str

    @property
    def settings(self) -> dict[str, str]:
        return {
            "search_path": self.search_path,
            "lock_timeout": self.lock_timeout,
            "client_encoding": self.client_encoding,
        }


class ForeignConnections:
    """Runs enqueues on connections that are not the store's own."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._db = database
        self._place: tuple[str, str] | None = None

    async def enqueue(self, connection: object, enqueue: Enqueue) -> list[Enqueued]:
        """Run an enqueue in the transaction of a connection."""
        _ = self._db.parts  # a store that is closed says so
        bridge = Bridge()

        def work() -> list[Enqueued]:
            with turn(connection):
                return self._join(connection, bridge, enqueue)

        return await bridge.work(work)

    def _join(self, connection: object, bridge: Bridge, enqueue: Enqueue) -> list[Enqueued]:
        try:
            driver = _driver_of(connection, bridge)
            driver.refuse_unfit()
            with translated(self._db.name), Savepoint(driver, "penstock"):
                return self._enqueue(driver, enqueue)
        except CannotJoin as refusal:
            raise ForeignConnection(self._db.name, refusal.what, refusal.advice) from None

    def _enqueue(self, driver: Driver, enqueue: Enqueue) -> list[Enqueued]:
        [row] = driver.rows("caller", {"schema": self._db.address.schema})
        caller = _Caller(*row)
        self._refuse_elsewhere(driver, caller)
        self._refuse_powerless(driver, caller)
        tx = ForeignTransaction(driver, *self._times(caller))
        self._settle_in(driver, caller)
        answers = enqueue(tx)
        if caller.isolation in _LOOKS_BACK:
            self._refuse_ended([answer.id for answer in answers if answer.created])
        self._leave(driver, caller)
        return answers

    def _refuse_elsewhere(self, driver: Driver, caller: _Caller) -> None:
        place = (caller.database, caller.server)
        if place != self._place:
            # Ours may have restarted since it was last asked.
            self._place = self._db.read_now(_whereabouts)
        if place != self._place:
            where = f"{driver.kind} to {caller.database!r}, which is not the store's database"
            raise OtherDatabase(self._db.name, where, "pass one to the store's database")

    def _refuse_powerless(self, driver: Driver, caller: _Caller) -> None:
        if caller.read_only:
            raise CannotJoin(f"{driver.kind} that may only read", "begin one that may write")
        # A tenant's store takes on a role that may.
        if not caller.may_use and self._db.address.tenant is None:
            reason = f"user {caller.user!r} may not use schema {self._db.address.schema!r}"
            raise AccessDenied(self._db.name, reason, GRANT)

    def _times(self, caller: _Caller) -> tuple[int, int]:
        clock = self._db.clock
        if isinstance(clock, ServerClock):
            return caller.now, caller.now
        return clock.now(), clock.monotonic()

    def _settle_in(self, driver: Driver, caller: _Caller) -> None:
        address = self._db.address
        ours = caller._replace(
            search_path=f"{quoted(address.schema)}, pg_temp",
            lock_timeout=str(LOCK_MS) if caller.lock_timeout == "0" else caller.lock_timeout,
            client_encoding="UTF8",
        )
        driver.rows("settle_in", ours.settings)
        if address.tenant is not None:
            driver.rows("act_as", {"role": address.tenant_role, "tenant": address.tenant})

    def _leave(self, driver: Driver, caller: _Caller) -> None:
        if self._db.address.tenant is not None:
            driver.rows("act_as", {"role": caller.role, "tenant": caller.tenant})
        driver.rows("settle_in", caller.settings)
        driver.rows("tell", {"channel": channel_of(self._db.address)})

    def _refuse_ended(self, ids: list[str]) -> None:
        """Jobs that ended since a transaction took its one look at the database are hidden from it.

        It would give them a second life; a look from outside finds them.
        """
        if self._db.read_now(lambda tx: tx.value("ended_since", (ids,))) is not None:
            reason = "a job ended since your transaction began; repeat the transaction"
            raise StoreUnavailable(self._db.name, reason)


def _whereabouts(tx: Transaction) -> tuple[str, str]:
    [(database, server)] = tx.rows("whereabouts")
    return database, server


def _driver_of(connection: object, bridge: Bridge) -> Driver:
    if _is_of("sqlalchemy", connection):
        from penstock.store.postgres.foreign.sqlalchemy_connection import below

        connection = below(connection, bridge)
    if isinstance(connection, psycopg.Connection):
        return PsycopgDriver(connection)
    if isinstance(connection, psycopg.AsyncConnection):
        return AsyncPsycopgDriver(connection, bridge)
    if _is_of("asyncpg", connection):
        from penstock.store.postgres.foreign.asyncpg_driver import asyncpg_driver

        return asyncpg_driver(connection, bridge)
    kind = type(connection)
    raise CannotJoin(f"a {kind.__module__}.{kind.__qualname__}".replace("builtins.", ""), KINDS)


def _is_of(library: str, connection: object) -> bool:
    """Whether it is made by a library, which then need not be imported to find out."""
    kinds = type(connection).__mro__
    return any(kind.__module__.partition(".")[0] == library for kind in kinds)
