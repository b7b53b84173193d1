"""Versioned migrations: forward only, all or nothing, under a lock, and printable."""

from contextlib import closing
from functools import cache
from importlib.resources import files

import structlog

from penstock.model.errors import AccessDenied, NotAPenstockStore, SchemaTooNew, StoreError
from penstock.store.postgres.connect import (
    PATIENCE_SECONDS,
    Address,
    Connection,
    answer,
    check_account,
    check_server,
    connect,
    quoted,
)
from penstock.store.postgres.errors import MIGRATE, translated
from penstock.store.postgres.queries import queries
from penstock.store.relational.transaction import load_migrations, with_guards

log = structlog.get_logger("penstock.store")

_PACKAGE = "penstock.store.postgres"
_OURS = frozenset({"jobs", "job_executions", "job_schedules", "limits", "workers"})


@cache
def migrations() -> dict[int, str]:
    """Version to SQL."""
    return load_migrations(_PACKAGE)


def latest() -> int:
    """The newest version this penstock knows."""
    return max(migrations())


def migrate(address: Address) -> tuple[int, int]:
    """Bring a schema up to date; the versions before and after."""
    with (
        translated(address.name),
        closing(connect(address, patience=PATIENCE_SECONDS)) as connection,
    ):
        check_server(connection, address)
        check_account(connection, address)
        before, granted = _state(connection, address)
        if before == latest() and (granted == latest() or not _may_grant(connection, address)):
            return before, before
        if before < latest():
            _refuse_stranger(connection, address, before)
        with connection.transaction():
            answer(connection, "lock_migration", schema=address.schema)
            # Once more, because another process may have made the tables meanwhile.
            before, granted = _state(connection, address)
            _bring_up(connection, address, before)
        return before, latest()


def exists(address: Address) -> bool:
    """Whether penstock has been in a schema."""
    with translated(address.name), closing(connect(address)) as connection:
        return _state(connection, address)[0] > 0


def sql_of(schema: str) -> str:
    """All that a new schema needs, for a database administrator to read and run."""
    address = Address(url="", name="", options={}, schema=schema)
    heading = (
        f"-- The schema {schema} of penstock, version {latest()}. Run it as the user who is to own "
        "the tables.\n-- Making the roles needs the right to do so; the last steps need the roles."
    )
    steps = [
        "BEGIN",
        "CREATE SCHEMA IF NOT EXISTS {schema}",
        *migrations().values(),
        *map(_access, ("owner", "roles", "worker", "tenant")),
        *map(_remembering, ("schema", "access")),
        "COMMIT",
    ]
    return "\n\n".join([heading, *(_rendered(step, address) for step in steps)]) + "\n"


def _state(connection: Connection, address: Address) -> tuple[int, int]:
    """The versions of the tables and of the rights to them; 0 where penstock has never been."""
    tables: set[str] = {*(answer(connection, "table_names", schema=address.schema) or ())}
    if "penstock_meta" not in tables:
        taken = sorted(tables & _OURS)
        if taken:
            advice = "name another schema in the URL, such as ?schema=work"
            raise NotAPenstockStore(address.name, f"a table {taken[0]!r} of its own", advice)
        return 0, 0
    with connection.transaction():
        connection.execute("; ".join(address.settings()).encode())
        rows = connection.execute(queries()["versions"]).fetchall()
    found = {str(name): int(value) for name, value in rows}
    version = found.get("schema", 0)
    if version > latest():
        raise SchemaTooNew(address.name, version, latest())
    return version, found.get("access", 0)


def _may_grant(connection: Connection, address: Address) -> bool:
    """Whether rights are missing that this user can give: roles may have been made since."""
    return bool(answer(connection, "is_owner", schema=address.schema)) and (
        _roles_exist(connection, address) or bool(answer(connection, "may_make_roles"))
    )


def _refuse_stranger(connection: Connection, address: Address, before: int) -> None:
    """Say in one sentence who can do what this user cannot."""
    if before > 0 and not answer(connection, "is_owner", schema=address.schema):
        problem = f"has schema version {before}, and this penstock needs {latest()}; {MIGRATE}"
        raise StoreError(address.name, problem)
    if address.tenant is not None or not answer(connection, "may_create", schema=address.schema):
        user = answer(connection, "user")
        advice = (
            "grant it CREATE on the database, or have an owner run `penstock migrate` "
            "or what `penstock migrate --sql` prints"
        )
        raise AccessDenied(address.name, f"user {user!r} may not create tables in it", advice)


def _bring_up(connection: Connection, address: Address, before: int) -> None:
    if not answer(connection, "schema_exists", schema=address.schema):
        _execute(connection, address, "CREATE SCHEMA {schema}")
    for number, text in migrations().items():
        if number > before:
            _execute(connection, address, text)
    _execute(connection, address, _access("owner"))
    _execute(connection, address, _remembering("schema"))
    if answer(connection, "may_make_roles"):
        _execute(connection, address, _access("roles"))
    if _roles_exist(connection, address):
        for step in (_access("worker"), _access("tenant"), _remembering("access")):
            _execute(connection, address, step)
    else:
        log.warning(
            "penstock.roles_missing",
            advice=f"have a database administrator run CREATE ROLE {quoted(address.worker_role)}; "
            f"CREATE ROLE {quoted(address.tenant_role)}; and then `penstock migrate` again",
        )


def _roles_exist(connection: Connection, address: Address) -> bool:
    roles = [address.worker_role, address.tenant_role]
    return bool(answer(connection, "known_roles", roles=roles) == len(roles))


def _access(name: str) -> str:
    return files(_PACKAGE).joinpath("access", f"{name}.sql").read_text("utf-8")


def _remembering(name: str) -> str:
    return (
        f"INSERT INTO {{schema}}.penstock_meta VALUES ('{name}', '{latest()}') "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )


def _execute(connection: Connection, address: Address, text: str) -> None:
    connection.execute(_rendered(text, address).encode())


def _rendered(text: str, address: Address) -> str:
    """SQL with the names of this installation written in."""
    ready = with_guards(text) + ";"
    for place, name in (
        ("{schema}", address.schema),
        ("{worker}", address.worker_role),
        ("{tenant}", address.tenant_role),
    ):
        ready = ready.replace(place, quoted(name))
    return ready
