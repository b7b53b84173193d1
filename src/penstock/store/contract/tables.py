"""Tables of extensions: declared here, kept by the stores that speak SQL beside their own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from penstock.model.job import Enqueued, NewJob

T = TypeVar("T")
Bindings = tuple[Any, ...] | dict[str, Any]


class Table(Struct, frozen=True):
    """A table: its primary key, and whose its rows are.

    Rows with a `tenant` column are seen by that tenant alone where the server keeps tenants apart,
    and go when it is erased; those with a `person` column go when that person is erased. Of one
    that `stays`, the extension's own `erase` decides what goes. Columns that are `derived` from
    others are neither moved nor compared: the extension fills them anew. Rows that stand for
    `files` outside the store say which those are: whoever moves or copies it takes them along.
    """

    name: str
    key: tuple[str, ...]
    tenant: str | None = None
    person: str | None = None
    stays: bool = False
    derived: tuple[str, ...] = ()
    files: str = ""


class Tables(Struct, frozen=True):
    """An extension's tables, and the package whose folder `sql` makes and asks them.

    `sql/0001_begin.sql` is a step of its version line, `sql/queries.sql` holds queries, each under
    `-- name: word`. A file `….sqlite.sql` or `….postgres.sql` is for one dialect. Queries take `?`
    or `:name`. Every table's name begins with the extension's. For PostgreSQL, `NAME_columns` does
    for many rows at once what `NAME` does for one: it takes a list for each of its values. For
    SQLite, `NAME_hundred` does it for 100 rows and takes their values one after the other; there,
    `{100 times (?, ?)}` stands for as many. Of the functions that a step makes on PostgreSQL,
    workers may call those that are named.
    """

    extension: str
    package: str
    tables: tuple[Table, ...]
    functions: tuple[str, ...] = ()


class Queries(Protocol):
    """The named queries of one extension, inside a transaction."""

    def run(self, name: str, bindings: Bindings = ()) -> int:
        """Run a query; return the number of rows it changed."""
        ...

    def rows(self, name: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Return all rows."""
        ...

    def row(self, name: str, bindings: Bindings = ()) -> tuple[Any, ...] | None:
        """Return the first row, or `None`."""
        ...

    def value(self, name: str, bindings: Bindings = ()) -> Any:
        """Return the first column of the first row, or `None`."""
        ...

    def many(self, name: str, rows: Sequence[Bindings]) -> int:
        """Run a query for every row; return the number of rows it changed in all."""
        ...


class TableTransaction(Protocol):
    """One transaction over the tables of all extensions, and over the jobs beside them."""

    @property
    def now(self) -> int:
        """The store's time in milliseconds, the same throughout."""
        ...

    def of(self, tables: Tables) -> Queries:
        """The queries of one extension, whose tables are there."""
        ...

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs in this transaction."""
        ...

    def set_column(self, table: str, column: str, value: Any, where: Mapping[str, Any]) -> int:
        """Write one column of the rows with these values in these columns; how many.

        For a table that settings name; its name may begin with that of a schema.
        """
        ...


class TableStore(Protocol):
    """The tables of extensions in one database."""

    @property
    def dialect(self) -> str:
        """The SQL it speaks, as the files of steps and queries are named."""
        ...

    async def make(self, tables: Tables, *, version: int | None = None) -> tuple[int, int]:
        """Bring an extension's tables up to date, or to a version; those before and after."""
        ...

    async def versions(self) -> dict[str, int]:
        """The extensions that have tables here, and the version of each."""
        ...

    async def write(self, work: Callable[[TableTransaction], T]) -> T:
        """Do something in one commit; it may be repeated, so it has no effects elsewhere."""
        ...

    async def read(self, question: Callable[[TableTransaction], T]) -> T:
        """Ask something of one state of the database."""
        ...

    async def page(
        self,
        table: Table,
        after: Sequence[Any] | None,
        limit: int,
        where: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Rows by key, from the first one after a key; those with these values, or all."""
        ...

    async def put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows as they were read elsewhere; one that is there is replaced."""
        ...

    async def columns(self, table: Table) -> dict[str, bool]:
        """Its columns, and whether each reads alike in every dialect; none if it is not there."""
        ...

    async def digest(self, table: Table, columns: Sequence[str]) -> tuple[int, int]:
        """How many rows there are and a sum over their values, in whatever order they come."""
        ...

    async def count(self, table: Table, where: Mapping[str, str] | None = None) -> int:
        """How many rows there are with these values in these columns, or at all."""
        ...

    async def sizes(self, tables: Sequence[Table], tenant: str | None = None) -> dict[str, int]:
        """How many bytes the values of each tenant's rows, or of one's, take in these tables.

        Those that are nobody's, or not there, do not count.
        """
        ...

    async def delete(self, table: Table, where: Mapping[str, str] | None = None) -> int:
        """Delete the rows with these values in these columns, or all; how many."""
        ...
