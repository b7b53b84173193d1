"""The tables of extensions in the same file, made by the writer that everything goes through."""

from collections.abc import Mapping, Sequence

from penstock.model.job import Enqueued, NewJob
from penstock.store.contract.tables import Table, Tables
from penstock.store.relational.enqueue import enqueue
from penstock.store.relational.tables import (
    META,
    RelationalTables,
    pending,
    quoted,
    refuse_undeclared,
)
from penstock.store.relational.transaction import Transaction
from penstock.store.sqlite.connect import SqliteTransaction
from penstock.store.sqlite.database import SqliteDatabase

ALIKE = frozenset(
    {"BIGINT", "BLOB", "BOOLEAN", "DOUBLE PRECISION", "INT", "INTEGER", "REAL", "SMALLINT", "TEXT"}
)


class SqliteTables(RelationalTables):
    """`TableStore` on SQLite."""

    dialect = "sqlite"

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self._file = database

    def ready(self, sql: str) -> str:
        """A query is taken as it is written."""
        return sql

    def enqueue(self, tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs."""
        return enqueue(tx, jobs)

    def select(self, column: str, kind: str) -> str:
        """A column as it is."""
        return quoted(column)

    def size(self, column: str, kind: str) -> str:
        """As a text, numbers included."""
        return f"octet_length({quoted(column)})"

    def insert(self, kind: str) -> str:
        """SQLite makes a number of a text where its column is one."""
        return "?"

    def reads_alike(self, kind: str) -> bool:
        """Text, numbers and bytes do."""
        return kind.upper() in ALIKE

    def before_reading(self, tx: Transaction) -> None:
        """A file reads the same everywhere."""

    def numbered(self, tx: Transaction, table: Table) -> Mapping[str, bool]:
        """SQLite goes on after the greatest number by itself."""
        return {}

    def advance(self, tx: Transaction, table: Table, column: str, number: int) -> None:
        """There is no sequence."""

    def bring_up(self, tables: Tables, steps: Mapping[int, str], *, whole: bool) -> tuple[int, int]:
        """Run the steps that are missing in one commit of the writer."""
        name = META + tables.extension

        def run(tx: SqliteTransaction) -> tuple[int, int]:
            before = int(tx.value("extension_version", (name,)) or 0)
            todo = pending(tables.extension, before, steps, self._file.name)
            if todo:
                there = [name for (name,) in tx.rows("table_names")]
                for sql in todo:
                    tx.connection.execute(sql)
                made = [name for (name,) in tx.rows("table_names")]
                refuse_undeclared(tables, there, made, whole=whole)
                tx.run("remember_extension", (name, max(steps)))
            return before, max(steps)

        return self._file.write_now(run)
