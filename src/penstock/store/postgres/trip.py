"""Operations that are one statement: alone, they need no transaction around it.

The server begins and commits by itself, and all is done in one round trip.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from penstock.model.clock import Clock, ServerClock
from penstock.store.postgres.connect import Connection
from penstock.store.postgres.queries import queries
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.relational.transaction import Bindings

T = TypeVar("T")


class Alone:
    """A connection without a transaction; by the server's clock, no time is known beforehand."""

    __slots__ = ("_connection", "_hears", "monotonic", "now")

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._hears = clock if isinstance(clock, ServerClock) else None
        self.now = None if self._hears else clock.now()
        self.monotonic = None if self._hears else clock.monotonic()

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query, which is committed by then."""
        query = queries()[name]
        return self._connection.execute(query, bindings, prepare=True).fetchall()

    def heard(self, now: int) -> None:
        """Pass on the server's time, just received."""
        if self._hears is not None:
            self._hears.heard(now)


class Trip(ABC, Generic[T]):
    """An operation that may run alone, or in a transaction with others."""

    __slots__ = ()

    changes: bool = False
    """Whether others should hear of it, if it ran alone."""

    @abstractmethod
    def alone(self, connection: Alone) -> T | None:
        """Do it in one statement; none, and nothing done, if that is not enough."""

    @abstractmethod
    def __call__(self, tx: PostgresTransaction) -> T:
        """Do it as a part of a transaction."""
