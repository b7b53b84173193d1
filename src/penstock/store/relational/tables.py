"""The tables of extensions: their version lines, their queries, and their rows in general."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from hashlib import sha256
from importlib.resources import files
from typing import Any, Self, TypeVar, cast

from penstock.model.errors import InvalidOption
from penstock.model.job import Enqueued, NewJob
from penstock.model.store_errors import SchemaTooNew, StoreError
from penstock.store.contract.tables import Queries, Table, Tables, TableTransaction
from penstock.store.relational.transaction import (
    Database,
    HeldTransaction,
    Transaction,
    named_queries,
)

T = TypeVar("T")

_STEP = re.compile(r"(\d{4})_\w+((?:\.\w+)?)\.sql")
_QUERIES = re.compile(r"[a-z]\w*((?:\.\w+)?)\.sql")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,62}")

PAGE = 1_000

META = "extension:"
"""Where the version of an extension's tables is kept, before its name."""


class Unit:
    """One transaction as extensions see it."""

    def __init__(self, tx: Transaction, store: "RelationalTables") -> None:
        self._tx = tx
        self._store = store

    @property
    def now(self) -> int:
        """The store's time in milliseconds, the same throughout."""
        return self._tx.now

    def of(self, tables: Tables) -> Queries:
        """The queries of one extension, whose tables are there."""
        return self._tx.using(self._store.queries(tables))

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs in this transaction."""
        return self._store.enqueue(self._tx, jobs)

    def set_column(self, table: str, column: str, value: Any, where: Mapping[str, Any]) -> int:
        """Write one column of the rows with these values in these columns; how many."""
        return self._store.set_column(self._tx, table, column, value, where)


class RelationalTables(ABC):
    """`TableStore` in SQL; making tables is the dialect's affair."""

    dialect: str
    overriding = ""
    """What an INSERT says to write a column that a sequence numbers."""

    def __init__(self, database: Database) -> None:
        self.db = database
        self._queries: dict[str, Mapping[str, Any]] = {}
        self._made: dict[str, int] = {}
        self._weighing: dict[tuple[Any, ...], tuple[Any, int]] = {}

    @abstractmethod
    def ready(self, sql: str) -> Any:
        """A query as the transactions of this dialect take it."""

    @abstractmethod
    def enqueue(self, tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs."""

    @abstractmethod
    def bring_up(self, tables: Tables, steps: Mapping[int, str], *, whole: bool) -> tuple[int, int]:
        """Run the steps that are missing, all or none; the versions before and after.

        The `whole` version line makes every table that is declared; a part of it need not.
        """

    @abstractmethod
    def select(self, column: str, kind: str) -> str:
        """A column as a value that every store can write: text, number, bytes or nothing."""

    @abstractmethod
    def size(self, column: str, kind: str) -> str:
        """How many bytes the value of a column takes, about."""

    @abstractmethod
    def insert(self, kind: str) -> str:
        """A placeholder for such a value."""

    @abstractmethod
    def reads_alike(self, kind: str) -> bool:
        """Tell whether a column of this type reads the same in every dialect."""

    @abstractmethod
    def before_reading(self, tx: Transaction) -> None:
        """Have values read the same on every server of this dialect."""

    @abstractmethod
    def numbered(self, tx: Transaction, table: Table) -> Mapping[str, bool]:
        """The columns that a sequence numbers, and whether an UPDATE may not change them."""

    @abstractmethod
    def advance(self, tx: Transaction, table: Table, column: str, number: int) -> None:
        """Have the sequence of a column go on after a number."""

    def forget(self) -> None:
        """Look at versions again: the database may be another one."""
        self._made.clear()
        self._weighing.clear()

    def at(self, tx: Transaction) -> Self:
        """The same, of what one transaction sees; there, nothing is made."""
        held = copy(self)
        held.db = cast("Database", HeldTransaction(tx))
        return held

    async def make(self, tables: Tables, *, version: int | None = None) -> tuple[int, int]:
        """Bring an extension's tables up to date, or to a version; those before and after."""
        if isinstance(self.db, HeldTransaction):
            found = (await self.versions()).get(tables.extension, 0)
            return found, found
        known = self._made.get(tables.extension)
        if known is not None and version in (None, known):
            return known, known
        steps = load_steps(tables.package, self.dialect)
        latest = max(steps)
        if version is not None:
            await self._refuse_version(tables.extension, version, latest)
            steps = {number: sql for number, sql in steps.items() if number <= version}
        whole = max(steps) == latest
        before, after = await asyncio.to_thread(self.bring_up, tables, steps, whole=whole)
        self._weighing.clear()
        if whole:
            self._made[tables.extension] = after
        return before, after

    async def _refuse_version(self, extension: str, version: int, latest: int) -> None:
        if version > latest:
            raise SchemaTooNew(f"{self.db.name} (tables of {extension!r})", version, latest)
        found = (await self.versions()).get(extension, 0)
        if found > version:
            problem = f"has version {found} of the tables of {extension!r}, and not {version}"
            advice = "run `penstock migrate` on the store that the rows come from"
            raise StoreError(self.db.name, f"{problem}; {advice}")

    def is_made(self, tables: Tables) -> bool:
        """Whether they were brought up to date since the store was opened."""
        return tables.extension in self._made

    async def versions(self) -> dict[str, int]:
        """The extensions that have tables here, and the version of each."""
        rows = await self.db.read(lambda tx: tx.rows("extension_versions"))
        return {str(name).removeprefix(META): int(version) for name, version in rows}

    async def write(self, work: Callable[[TableTransaction], T]) -> T:
        """Do something in one commit."""
        return await self.db.write(lambda tx: work(Unit(tx, self)))

    async def read(self, question: Callable[[TableTransaction], T]) -> T:
        """Ask something of one state of the database."""
        return await self.db.read(lambda tx: question(Unit(tx, self)))

    def queries(self, tables: Tables) -> Mapping[str, Any]:
        """The queries of an extension, made ready once."""
        found = self._queries.get(tables.package)
        if found is None:
            loaded = load_named(tables.package, self.dialect)
            found = {name: self.ready(sql) for name, sql in loaded.items()}
            self._queries[tables.package] = found
        return found

    async def page(
        self,
        table: Table,
        after: Sequence[Any] | None,
        limit: int,
        where: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Rows by key, from the first one after a key; those with these values, or all."""

        def read(tx: Transaction) -> list[dict[str, Any]]:
            self.before_reading(tx)
            kinds = self._columns(tx, table)
            shown = ", ".join(self.select(column, kind) for column, kind in kinds.items())
            key = ", ".join(map(quoted, table.key))
            beyond = ", ".join(self.insert(kinds[column]) for column in table.key)
            later = () if after is None else (f"({key}) > ({beyond})",)
            wanted = _where(where, *later)
            sql = f"SELECT {shown} FROM {quoted(table.name)}{wanted} ORDER BY {key} LIMIT ?"
            bindings = (*(where or {}).values(), *(after or ()), limit)
            rows = self._one(tx, sql).rows("one", bindings)
            return [dict(zip(kinds, row, strict=True)) for row in rows]

        return await self.db.read(read)

    async def put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows as they were read elsewhere; one that is there is replaced."""

        def write(tx: Transaction) -> None:
            kinds = self._columns(tx, table)
            names = ", ".join(map(quoted, kinds))
            values = ", ".join(map(self.insert, kinds.values()))
            numbered = self.numbered(tx, table)
            others = [c for c in kinds if c not in table.key and not numbered.get(c)]
            changed = ", ".join(f"{quoted(c)} = excluded.{quoted(c)}" for c in others)
            conflict = f"DO UPDATE SET {changed}" if others else "DO NOTHING"
            sql = (
                f"INSERT INTO {quoted(table.name)} ({names}) {self.overriding} VALUES ({values}) "
                f"ON CONFLICT ({', '.join(map(quoted, table.key))}) {conflict}"
            )
            self._one(tx, sql).many("one", [tuple(row.get(c) for c in kinds) for row in rows])
            for column in numbered:
                numbers = [int(row[column]) for row in rows if row.get(column) is not None]
                if numbers:
                    self.advance(tx, table, column, max(numbers))

        await self.db.write(write)

    async def columns(self, table: Table) -> dict[str, bool]:
        """Its columns, and whether each reads alike in every dialect; none if it is not there."""
        found = await self.db.read(lambda tx: self._found(tx, table))
        return {name: self.reads_alike(kind) for name, kind in found.items()}

    async def digest(self, table: Table, columns: Sequence[str]) -> tuple[int, int]:
        """How many rows there are and a sum over their values, in whatever order they come."""
        count, total, after = 0, 0, None
        while rows := await self.page(table, after, PAGE):
            count += len(rows)
            for row in rows:
                text = "".join(_as_text(row[column]) for column in columns)
                total += int.from_bytes(sha256(text.encode("utf-8", "replace")).digest()[:16])
            after = [rows[-1][column] for column in table.key]
        return count, total

    async def count(self, table: Table, where: Mapping[str, str] | None = None) -> int:
        """How many rows there are with these values in these columns, or at all."""
        sql = f"SELECT count(*) FROM {quoted(table.name)}{_where(where)}"
        bindings = tuple((where or {}).values())
        return int(await self.db.read(lambda tx: self._one(tx, sql).value("one", bindings)))

    async def sizes(self, tables: Sequence[Table], tenant: str | None = None) -> dict[str, int]:
        """How many bytes the values of each tenant's rows, or of one's, take in these tables."""
        asked = (*((table.name, table.tenant) for table in tables), tenant is None)

        def read(tx: Transaction) -> dict[str, int]:
            if asked not in self._weighing:
                self._weighing[asked] = self._weigh(tx, tables, one=tenant is not None)
            sql, count = self._weighing[asked]
            found = tx.using({"one": sql}).rows("one", () if tenant is None else (tenant,) * count)
            sizes: dict[str, int] = {}
            for name, total in found:
                sizes[str(name)] = sizes.get(str(name), 0) + int(total)
            return sizes

        return await self.db.read(read)

    def _weigh(self, tx: Transaction, tables: Sequence[Table], *, one: bool) -> tuple[Any, int]:
        """The query that weighs tables, and how many they are."""
        parts: list[str] = []
        for table in tables:
            kinds = self._found(tx, table)
            if table.tenant is not None and kinds:
                each = (f"coalesce({self.size(name, kind)}, 0)" for name, kind in kinds.items())
                owner = quoted(table.tenant)
                wanted = f" WHERE {owner} = ?" if one else ""
                weight = f"sum({' + '.join(each)})"
                parts.append(
                    f"SELECT {owner}, {weight} FROM {quoted(table.name)}{wanted} GROUP BY 1"
                )
        none = "SELECT '', 0 WHERE false"
        return self.ready(" UNION ALL ".join(parts) or none), len(parts)

    async def delete(self, table: Table, where: Mapping[str, str] | None = None) -> int:
        """Delete the rows with these values in these columns, or all; how many."""
        sql = f"DELETE FROM {quoted(table.name)}{_where(where)}"
        bindings = tuple((where or {}).values())
        return await self.db.write(lambda tx: self._one(tx, sql).run("one", bindings))

    def set_column(
        self, tx: Transaction, table: str, column: str, value: Any, where: Mapping[str, Any]
    ) -> int:
        """Write one column of the rows with these values in these columns; how many."""
        name = ".".join(quoted(part) for part in table.split(".", 1))
        narrowed = " AND ".join(f"{quoted(each)} = ?" for each in where)
        sql = f"UPDATE {name} SET {quoted(column)} = ? WHERE {narrowed}"
        return self._one(tx, sql).run("one", (value, *where.values()))

    def _one(self, tx: Transaction, sql: str) -> Transaction:
        return tx.using({"one": self.ready(sql)})

    def _columns(self, tx: Transaction, table: Table) -> dict[str, str]:
        found = self._found(tx, table)
        if not found:
            raise InvalidOption("table", table.name, "one that the extension's steps make")
        return found

    def _found(self, tx: Transaction, table: Table) -> dict[str, str]:
        return {
            str(name): str(kind)
            for name, kind in tx.rows("table_columns", (table.name,))
            if name not in table.derived
        }


def _where(values: Mapping[str, str] | None, *further: str) -> str:
    """The condition that columns have these values, which are bound in their order."""
    named = [f"{quoted(column)} = ?" for column in values or ()]
    return f" WHERE {' AND '.join((*named, *further))}" if named or further else ""


def load_steps(package: str, dialect: str) -> dict[int, str]:
    """The version line of an extension's tables, in one dialect."""
    found: dict[int, str] = {}
    for name, text in _files(package):
        step = _STEP.fullmatch(name)
        if step is not None and step[2] in ("", f".{dialect}"):
            if int(step[1]) in found:
                expected = f"one step {step[1]} for {dialect}"
                raise InvalidOption("sql", f"{package}/{name}", expected)
            found[int(step[1])] = text
    if sorted(found) != list(range(1, len(found) + 1)) or not found:
        expected = f"a folder sql with steps 0001_….sql, 0002_….sql and so on for {dialect}"
        raise InvalidOption("sql", package, expected)
    return dict(sorted(found.items()))


def load_named(package: str, dialect: str) -> dict[str, str]:
    """The queries of an extension; those for one dialect replace those for all."""
    every = [(match, text) for name, text in _files(package) if (match := _QUERIES.fullmatch(name))]
    common = [text for match, text in every if match[1] == ""]
    return named_queries([*common, *(text for match, text in every if match[1] == f".{dialect}")])


def _files(package: str) -> list[tuple[str, str]]:
    folder = files(package).joinpath("sql")
    if not folder.is_dir():
        return []
    found = [(file.name, file.read_text("utf-8")) for file in folder.iterdir() if file.is_file()]
    return sorted(found)


def pending(extension: str, before: int, steps: Mapping[int, str], place: str) -> list[str]:
    """The steps that are missing; a version line that is longer there is refused."""
    latest = max(steps)
    if before > latest:
        raise SchemaTooNew(f"{place} (tables of {extension!r})", before, latest)
    return [sql for number, sql in steps.items() if number > before]


def refuse_undeclared(
    tables: Tables, before: Collection[str], after: Collection[str], *, whole: bool
) -> None:
    """Refuse steps that made other tables than those that are declared."""
    declared = {table.name for table in tables.tables}
    for name in sorted({*after} - {*before} - declared):
        expected = f"one that the extension {tables.extension!r} declares, to be copied and erased"
        raise InvalidOption("table", name, expected)
    for name in sorted(declared - {*after}) if whole else ():
        raise InvalidOption("table", name, "one that the extension's steps make")


def _as_text(value: object) -> str:
    """A value so that no two rows of different values are the same text."""
    if value is None:
        return "-"
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # an integer that a column of another dialect holds as a float
    text = value.hex() if isinstance(value, bytes) else str(value)
    return f"{len(text)}:{text}"


def quoted(name: str) -> str:
    """The name of a table or column, which a declaration brings."""
    if not _WORD.fullmatch(name):
        raise InvalidOption("column", name, "a word of a-z, 0-9 and _")
    return f'"{name}"'
