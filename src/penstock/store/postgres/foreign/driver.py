"""What penstock needs of a connection, whichever library it is of."""

from abc import ABC, abstractmethod
from typing import Any

import psycopg

from penstock.store.relational.transaction import Bindings

KINDS = "pass a connection of psycopg or asyncpg, or a session or connection of SQLAlchemy"


class CannotJoin(Exception):
    """A connection whose transaction cannot be joined: what it is, and what to pass instead."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def failed(kind: str) -> CannotJoin:
    """What to say about a transaction that only waits for its end."""
    return CannotJoin(f"{kind} whose transaction has failed", "roll it back first")


class Driver(ABC):
    """A connection of the caller's, used step by step; errors are psycopg's."""

    kind: str
    """What errors call it."""

    @abstractmethod
    def refuse_unfit(self) -> None:
        """Raise CannotJoin unless there is a transaction to join, or one begins by itself."""

    @abstractmethod
    def say(self, statement: str) -> None:
        """Run a statement about the transaction itself, to the end whatever happens."""

    @abstractmethod
    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""

    @abstractmethod
    def change(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""


class Savepoint:
    """A nested transaction that an exception, or `undo()`, takes back."""

    __slots__ = ("_driver", "_name")

    def __init__(self, driver: Driver, name: str = "operation") -> None:
        self._driver = driver
        self._name = name

    def __enter__(self) -> "Savepoint":
        try:
            self._driver.say(f"SAVEPOINT {self._name}")
        except psycopg.errors.InFailedSqlTransaction:
            raise failed(self._driver.kind) from None
        return self

    def undo(self) -> None:
        """Take back what was done since the savepoint."""
        self._driver.say(f"ROLLBACK TO SAVEPOINT {self._name}")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._driver.say(f"RELEASE SAVEPOINT {self._name}")
            return
        try:
            self.undo()
            self._driver.say(f"RELEASE SAVEPOINT {self._name}")
        except Exception:
            # The connection is gone; what made it so is on its way to the caller.
            return
