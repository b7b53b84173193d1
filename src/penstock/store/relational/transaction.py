"""One transaction in progress: the store's time and the named queries of its dialect."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from penstock.model.clock import Clock
from penstock.model.job import Job
from penstock.model.states import sources
from penstock.store.contract import Subscription
from penstock.store.statements import named_pieces

if TYPE_CHECKING:
    from types import CoroutineType

_PART = re.compile(r"\{part (\w+)\}")
_GUARD = re.compile(r"\{from (\w+)\}")
_TIMES = re.compile(r"\{(\d+) times (\([^)]*\))\}")


def load_queries(package: str, read_as: Mapping[str, str] | None = None) -> dict[str, str]:
    """All named queries in the `sql` folder of a package.

    `{columns}` stands for the fields of a `Job` in their order, some of them `read_as` the dialect
    has them.
    """
    columns = ", ".join((read_as or {}).get(name, name) for name in Job.__struct_fields__)
    folder = sorted(files(package).joinpath("sql").iterdir(), key=lambda f: f.name)
    texts = [f.read_text("utf-8") for f in folder if f.name.endswith(".sql")]
    return named_queries(text.replace("{columns}", columns) for text in texts)


def named_queries(texts: Iterable[str]) -> dict[str, str]:
    """The queries that stand in texts under `-- name: word`; what comes later replaces."""
    found: dict[str, dict[str, str]] = {"name": {}, "part": {}}
    for text in texts:
        for kind, name, sql in named_pieces(text):
            found[kind][name] = _TIMES.sub(_repeated, with_guards(sql))
    parts = found["part"]
    return {
        name: _PART.sub(lambda match: parts[match[1]], sql) for name, sql in found["name"].items()
    }


def _repeated(match: re.Match[str]) -> str:
    return ", ".join([match[2]] * int(match[1]))


def load_migrations(package: str) -> dict[int, str]:
    """Version to SQL, from files named 0001_core.sql and so on in the folder `migrations`."""
    found = {
        int(file.name[:4]): file.read_text("utf-8")
        for file in files(package).joinpath("migrations").iterdir()
        if file.name.endswith(".sql")
    }
    return dict(sorted(found.items()))


def with_guards(sql: str) -> str:
    """A query or a migration with the states of the transition table written in."""
    return _GUARD.sub(lambda match: _states(match[1]), sql).strip().rstrip(";")


def _states(action: str) -> str:
    return ", ".join(f"'{status}'" for status in sources(action))


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

    def using(self, queries: Mapping[str, Any]) -> "Transaction":
        """The same transaction with other queries, made ready by its database."""
        raise NotImplementedError  # a caller's own transaction takes ours alone

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
        """Return the first row, or `None`."""
        found = self.rows(name, bindings)
        return found[0] if found else None

    def value(self, name: str, bindings: Bindings = ()) -> Any:
        """Return the first column of the first row, or `None`."""
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


T = TypeVar("T")


class Database(Protocol):
    """An open database; operations run in transactions of its choosing, and may be repeated."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def clock(self) -> Clock:
        """The one clock of the store."""
        ...

    async def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation; returns once it is committed."""
        ...

    def write_now(self, operation: Callable[[Transaction], T]) -> T:
        """The same from a thread that has no event loop."""
        ...

    async def read(self, question: Callable[[Transaction], T]) -> T:
        """Ask, seeing one state of the database throughout."""
        ...

    def read_now(self, question: Callable[[Transaction], T]) -> T:
        """The same from a thread that has no event loop."""
        ...

    def subscribe(self) -> Subscription:
        """Listen for changes made by this or any other process."""
        ...


class HeldTransaction:
    """One transaction that stays open, as a database that can only be read."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    async def read(self, question: Callable[[Transaction], T]) -> T:
        """Ask; all questions see the same moment."""
        return await asyncio.to_thread(question, self._tx)


class StorePart:
    """A part of a store: its methods are operations, each in a transaction of the database."""

    def __init__(self, database: Database) -> None:
        self.db = database


S = TypeVar("S", bound=StorePart)
P = ParamSpec("P")
if TYPE_CHECKING:
    Operation = Callable[Concatenate[S, Transaction, P], T]
    Method = Callable[Concatenate[S, P], CoroutineType[Any, Any, T]]
    MethodNow = Callable[Concatenate[S, P], T]


def writes(operation: "Operation[S, P, T]") -> "Method[S, P, T]":
    """Give an operation the next transaction of the writer; it is committed on return."""

    @wraps(operation)
    async def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.db.write(lambda tx: operation(self, tx, *args, **kwargs))

    return method  # type: ignore[return-value]  # mypy calls what it returns a Coroutine


def reads(question: "Operation[S, P, T]") -> "Method[S, P, T]":
    """Give a question a transaction that sees one state of the database throughout."""

    @wraps(question)
    async def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.db.read(lambda tx: question(self, tx, *args, **kwargs))

    return method  # type: ignore[return-value]  # mypy calls what it returns a Coroutine


def writes_now(operation: "Operation[S, P, T]") -> "MethodNow[S, P, T]":
    """Do what `writes` does, for a thread that has no event loop."""

    @wraps(operation)
    def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.write_now(lambda tx: operation(self, tx, *args, **kwargs))

    return method


def reads_now(question: "Operation[S, P, T]") -> "MethodNow[S, P, T]":
    """Do what `reads` does, for a thread that has no event loop."""

    @wraps(question)
    def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.read_now(lambda tx: question(self, tx, *args, **kwargs))

    return method
