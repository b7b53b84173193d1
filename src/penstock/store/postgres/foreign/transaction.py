"""The caller's transaction, as the operations of the store see it."""

from collections.abc import Collection, Iterable
from typing import Any

from penstock.store.postgres.foreign.driver import Driver, Savepoint
from penstock.store.postgres.queries import queries
from penstock.store.postgres.transaction import rows_together
from penstock.store.relational.transaction import Bindings, Transaction


class ForeignTransaction(Transaction):
    """Named queries on somebody else's connection."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver, now: int, monotonic: int) -> None:
        super().__init__(now, monotonic)
        self._driver = driver

    def run(self, name: str, bindings: Bindings = ()) -> int:
        """Run a named query; the number of rows it changed."""
        return self._driver.change(name, bindings)

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a named query."""
        return self._driver.rows(name, bindings)

    def many(self, name: str, rows: Iterable[Bindings]) -> int:
        """Run a named query for every row; the number of rows it changed in all."""
        given = list(rows)
        together = rows_together(queries(), name, given) if len(given) > 1 else None
        if together is not None:
            return self._driver.change(*together)
        return sum(self._driver.change(name, row) for row in given)

    def savepoint(self) -> Savepoint:
        """Begin a nested transaction."""
        return Savepoint(self._driver)

    def listed(self, values: Collection[Any]) -> list[Any]:
        """A list for `= ANY(…)`."""
        return list(values)

    def lock(self, *names: str) -> None:
        """Keep out every other transaction that locks the same name, until this one ends."""
        self._driver.rows("lock_name", ("\x1f".join(("", *names)),))
