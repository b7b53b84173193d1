"""One transaction in progress: the store's time and the named queries of its dialect."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Bindings = tuple[Any, ...] | dict[str, Any]


class Savepoint(Protocol):
    """A nested transaction that an exception takes back as well."""

    def undo(self) -> None:
        """Take back what was done since the savepoint."""
        ...


class Transaction(ABC):
    """What every operation gets; `now` is wall time, `monotonic` times leases."""

    __slots__ = ("_monotonic", "_now", "changed")

    changed: bool
    """Whether others should hear of it."""

    def __init__(self, now: int, monotonic: int) -> None:
        self.changed = False
        self._now = now
        self._monotonic = monotonic

    @property
    def now(self) -> int:
        """The store's time in milliseconds, the same throughout the transaction."""
        return self._now

    @property
    def monotonic(self) -> int:
        """The clock that leases and leaderships are measured by, which nobody can put back."""
        return self._monotonic

    @abstractmethod
    def run(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""

    @abstractmethod
    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""

    @abstractmethod
    def many(self, name: str, rows: Iterable[Bindings]) -> int:
        """Run a named query for every row; the number of rows it changed in all."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[Savepoint]:
        """Begin a nested transaction."""

    @abstractmethod
    def listed(self, values: Collection[Any]) -> Any:
        """A list of texts or numbers, as the dialect's queries take one."""

    @abstractmethod
    def lock(self, *names: str) -> None:
        """Keep out every other transaction that locks the same name, until this one ends."""

    def row(self, name: str, bindings: Bindings = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""
        found = self.rows(name, bindings)
        return found[0] if found else None

    def value(self, name: str, bindings: Bindings = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.row(name, bindings)
        return None if row is None else row[0]

    def fenced(self, name: str, rows: Sequence[Bindings]) -> list[bool]:
        """Run a fenced update for every row; which of them still held the lease."""
        with self.savepoint() as savepoint:
            if self.many(name, rows) == len(rows):
                return [True] * len(rows)
            savepoint.undo()
        return [self.many(name, (row,)) == 1 for row in rows]


def readable(stored: bytes | str) -> str:
    """Text that a hand may have edited: one row that is not UTF-8 must not end a whole query."""
    return stored if isinstance(stored, str) else stored.decode("utf-8", "replace")
