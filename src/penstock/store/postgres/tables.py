"""The tables of extensions on PostgreSQL: in the schema of the installation, under its policies."""

from collections.abc import Mapping, Sequence
from contextlib import closing

from penstock.model.job import Enqueued, NewJob
from penstock.model.store_errors import StoreError
from penstock.store.contract.tables import Table, Tables
from penstock.store.postgres.connect import (
    PATIENCE_SECONDS,
    Address,
    Connection,
    answer,
    connect,
)
from penstock.store.postgres.connect import quoted as name_of
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.enqueue import enqueue_all
from penstock.store.postgres.errors import MIGRATE, translated
from penstock.store.postgres.migrate import State, survey
from penstock.store.postgres.queries import for_psycopg, queries
from penstock.store.relational.tables import (
    META,
    RelationalTables,
    pending,
    quoted,
    refuse_undeclared,
)
from penstock.store.relational.transaction import Transaction

PLAIN = frozenset({"bigint", "integer", "smallint", "double precision", "real", "text"})
ALIKE = PLAIN - {"real"} | {"boolean", "bytea"}

ACCESS = "access:"
"""For which version of an extension's tables the roles have their rights, before its name."""


class PostgresTables(RelationalTables):
    """`TableStore` on PostgreSQL."""

    dialect = "postgres"
    overriding = "OVERRIDING SYSTEM VALUE"

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._address = database.address

    def ready(self, sql: str) -> bytes:
        """A query as psycopg takes it."""
        return for_psycopg(sql)

    def enqueue(self, tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Insert jobs."""
        return enqueue_all(tx, jobs)

    def select(self, column: str, kind: str) -> str:
        """A column as text, number or bytes; a truth value is 0 or 1."""
        if kind in PLAIN or kind == "bytea":
            return quoted(column)
        return f"{quoted(column)}::int" if kind == "boolean" else f"{quoted(column)}::text"

    def size(self, column: str, kind: str) -> str:
        """As a text, numbers included; bytes are not decoded for it."""
        plain = kind in ("bytea", "text")
        return f"octet_length({quoted(column)}{'' if plain else '::text'})"

    def insert(self, kind: str) -> str:
        """Whatever was read elsewhere, as the column's type reads it."""
        return "?" if kind == "bytea" else f"CAST(?::text AS {kind})"

    def reads_alike(self, kind: str) -> bool:
        """Text, whole numbers, doubles and bytes do."""
        return kind in ALIKE

    def before_reading(self, tx: Transaction) -> None:
        """Have times read the same, whatever the server's zone and style."""
        tx.row("neutral_times")

    def numbered(self, tx: Transaction, table: Table) -> Mapping[str, bool]:
        """The columns that a sequence numbers, and whether an UPDATE may not change them."""
        found = tx.rows("numbered_columns", {"table": quoted(table.name)})
        return {str(column): bool(always) for column, always in found}

    def advance(self, tx: Transaction, table: Table, column: str, number: int) -> None:
        """Have the sequence of a column go on after a number."""
        bindings = {"table": quoted(table.name), "column": column, "number": number}
        tx.row("advance_sequence", bindings)

    def bring_up(self, tables: Tables, steps: Mapping[int, str], *, whole: bool) -> tuple[int, int]:
        """Run the steps that are missing, under the lock of all migrations.

        Roles that were made after the tables get their rights here, too.
        """
        address, extension = self._address, tables.extension
        with (
            translated(address.name),
            closing(connect(address, patience=PATIENCE_SECONDS)) as connection,
        ):
            before, access = _versions(connection, address, extension)
            todo = pending(extension, before, steps, address.name)
            if not todo and access == before:
                return before, before
            state = survey(connection, address)
            if not todo and not state.roles_exist:
                return before, before
            if address.tenant is not None or not state.is_owner:
                lacks = "lacks the" if todo else "gives its roles no rights to the"
                problem = f"{lacks} tables of the extension {extension!r}; {MIGRATE}"
                raise StoreError(address.name, problem)
            with connection.transaction():
                answer(connection, "lock_migration", schema=address.schema)
                # Once more, because another process may have made them meanwhile.
                before, access = _versions(connection, address, extension)
                todo = pending(extension, before, steps, address.name)
                if not todo and (access == before or not state.roles_exist):
                    return before, before  # to alter them again would wait for all who use them
                _use(connection, address)
                there = _table_names(connection)
                for sql in todo:
                    connection.execute(sql.encode())
                made = _table_names(connection)
                refuse_undeclared(tables, there, made, whole=whole)
                for sql in _rights(tables, made, address, state):
                    connection.execute(sql.encode())
                version = str(max(steps))
                connection.execute(_REMEMBER, (META + extension, version))
                if state.roles_exist:
                    connection.execute(_REMEMBER, (ACCESS + extension, version))
            return before, max(steps)


_REMEMBER = b"""
INSERT INTO penstock_meta (name, value) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


def _versions(connection: Connection, address: Address, extension: str) -> tuple[int, int]:
    """The version of an extension's tables, and the one that roles have rights to."""
    with connection.transaction():
        _use(connection, address)
        made = answer(connection, "extension_version", name=META + extension)
        access = answer(connection, "extension_version", name=ACCESS + extension)
    return int(made or 0), int(access or 0)


def _table_names(connection: Connection) -> set[str]:
    return {str(name) for (name,) in connection.execute(queries()["table_names"])}


def _use(connection: Connection, address: Address) -> None:
    """Have names mean the tables of this installation, until the transaction ends."""
    connection.execute("; ".join(address.settings()).encode())


def _rights(tables: Tables, made: set[str], address: Address, state: State) -> list[str]:
    """Who may do what with an extension's tables and functions."""
    found = [_access(table, address, state) for table in tables.tables if table.name in made]
    if state.roles_exist:
        found += [_callable(function, address) for function in tables.functions]
    return found


def _callable(function: str, address: Address) -> str:
    """Who may call a function, beside its owner."""
    return f"GRANT EXECUTE ON FUNCTION {quoted(function)} TO {name_of(address.worker_role)}"


def _access(table: Table, address: Address, state: State) -> str:
    """Who may do what with a table's rows: its owner and workers all, a tenant its own."""
    name = quoted(table.name)
    steps = [
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS owner ON {name}",
        f"CREATE POLICY owner ON {name} TO CURRENT_USER USING (true)",
    ]
    if state.roles_exist:
        worker, tenant = name_of(address.worker_role), name_of(address.tenant_role)
        schema = name_of(address.schema)
        steps += [
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {worker}",
            f"DROP POLICY IF EXISTS worker ON {name}",
            f"CREATE POLICY worker ON {name} TO {worker} USING (true)",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {worker}, {tenant}",
            f"GRANT UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {worker}",
            f"GRANT SELECT ON {name} TO {tenant}",
            f"DROP POLICY IF EXISTS tenant ON {name}",
        ]
        if table.tenant is not None:
            mine = f"{quoted(table.tenant)} = (SELECT tenant())"
            steps += [
                f"GRANT INSERT, UPDATE, DELETE ON {name} TO {tenant}",
                f"CREATE POLICY tenant ON {name} TO {tenant} USING ({mine}) WITH CHECK ({mine})",
            ]
    return ";\n".join(steps)
