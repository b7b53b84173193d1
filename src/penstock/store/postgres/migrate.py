"""Migrations and the functions that go with them: all or nothing, under a lock, and printable.

Tables change by numbered migrations, forward only. Functions have no numbers: those of `functions/`
are installed whenever what they say has changed, unless a newer penstock has brought its own.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import NamedTuple

import structlog

from penstock.model.store_errors import (
    AccessDenied,
    NotAPenstockStore,
    SchemaTooNew,
    ServerTooOld,
    StoreError,
    StoreReadOnly,
)
from penstock.store.postgres.connect import (
    PATIENCE_SECONDS,
    Address,
    Connection,
    answer,
    connect,
    quoted,
)
from penstock.store.postgres.errors import MIGRATE, NAME_PRIMARY, translated
from penstock.store.postgres.queries import queries
from penstock.store.relational.transaction import load_migrations, with_guards

log = structlog.get_logger("penstock.store")

OLDEST = 15

_PACKAGE = "penstock.store.postgres"
_OURS = frozenset({"jobs", "job_executions", "job_schedules", "limits", "workers"})


@cache
def migrations() -> dict[int, str]:
    """Version to SQL."""
    return load_migrations(_PACKAGE)


@cache
def functions() -> str:
    """Every function with its state guards, in the order of the files' names."""
    return "\n\n".join(with_guards(text) + ";" for text in _texts("functions").values())


def latest() -> int:
    """The newest version this penstock knows."""
    return max(migrations())


@cache
def release() -> str:
    """The version of this penstock."""
    return version("penstock")


def functions_version() -> str:
    """Whose functions these are, and which: the version of penstock and a hash of what they say."""
    return f"{release()} {sha256(functions().encode()).hexdigest()[:16]}"


def are_current(installed: str) -> bool:
    """Whether functions need not be installed: they are ours, or those of a newer penstock.

    A newer one still answers what this one asks: a function that takes or returns something else
    gets another name.
    """
    return installed == functions_version() or _numbers(installed) > _numbers(release())


class State(NamedTuple):
    """What a server, a database and a schema are like for the user who is connected."""

    server_number: int
    server_version: str
    is_standby: bool
    encoding: str
    user: str
    may_make_roles: bool
    may_create: bool
    schema_exists: bool
    is_owner: bool
    roles_exist: bool
    may_be_tenant: bool | None
    """None where there is no role for tenants."""
    tables: list[str]
    schema: int = 0
    access: int = 0
    functions: str = ""

    @property
    def may_grant(self) -> bool:
        """Whether rights are missing that this user can give: roles may have been made since."""
        may = self.roles_exist or self.may_make_roles
        return self.access < latest() and may and (self.is_owner or self.schema == 0)

    @property
    def is_behind(self) -> bool:
        """Whether tables or functions are missing."""
        return self.schema < latest() or not are_current(self.functions)


def migrate(address: Address) -> tuple[int, int]:
    """Bring a schema up to date; the versions before and after."""
    with closing(connect(address, patience=PATIENCE_SECONDS)) as connection:
        return migrate_by(connection, address)


def migrate_by(connection: Connection, address: Address) -> tuple[int, int]:
    """Bring a schema up to date by a connection, which is as it was afterwards."""
    with translated(address.name):
        state = survey(connection, address)
        _refuse_server(state, address)
        _refuse_tenant(state, address)
        state = _with_versions(connection, address, state)
        if not state.is_behind and not state.may_grant:
            return state.schema, latest()
        if state.is_behind:
            _refuse_stranger(state, address)
        with connection.transaction():
            answer(connection, "lock_migration", schema=address.schema)
            # Once more, because another process may have made the tables meanwhile.
            state = _with_versions(connection, address, survey(connection, address))
            steps = [_rendered(step, address) for step in _missing(state)]
            if steps:
                connection.execute("\n".join(steps).encode())
        if state.schema < latest() and not state.may_grant:
            log.warning("penstock.roles_missing", advice=_how_to_make_roles(address))
        return state.schema, latest()


def exists(address: Address) -> bool:
    """Whether penstock has been in a schema."""
    with translated(address.name), closing(connect(address)) as connection:
        state = survey(connection, address)
        return _with_versions(connection, address, state).schema > 0


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
        *_tables_after(0),
        *_functions(),
        *_grants(make_roles=True),
        "COMMIT",
    ]
    return "\n\n".join([heading, *(_rendered(step, address) for step in steps)]) + "\n"


def survey(connection: Connection, address: Address) -> State:
    """All but the versions, which only those may read who may work here."""
    roles = [address.worker_role, address.tenant_role]
    bindings = {"schema": address.schema, "roles": roles, "tenant": address.tenant_role}
    row = connection.execute(queries()["survey"], bindings).fetchone()
    assert row is not None
    return State(*row)


def _with_versions(connection: Connection, address: Address, state: State) -> State:
    if "penstock_meta" not in state.tables:
        taken = sorted(_OURS & {*state.tables})
        if taken:
            advice = "name another schema in the URL, such as ?schema=work"
            raise NotAPenstockStore(address.name, f"a table {taken[0]!r} of its own", advice)
        return state
    with connection.transaction():
        connection.execute("; ".join(address.settings()).encode())
        meta: dict[str, str] = dict(connection.execute(queries()["versions"]).fetchall())
    schema, access = (int(meta.get(name, 0)) for name in ("schema", "access"))
    if schema > latest():
        raise SchemaTooNew(address.name, schema, latest())
    return state._replace(schema=schema, access=access, functions=meta.get("functions", ""))


def _refuse_server(state: State, address: Address) -> None:
    """Refuse a server that is too old, that can only be read, or that cannot hold every text."""
    if state.server_number < OLDEST * 10_000:
        known_as = state.server_version.partition(" ")[0]
        raise ServerTooOld(address.name, known_as, str(OLDEST))
    if state.is_standby:
        raise StoreReadOnly(address.name, NAME_PRIMARY)
    if state.encoding != "UTF8":
        what = f"has the encoding {state.encoding}, which cannot hold every text; "
        raise StoreError(address.name, f"{what}use a UTF8 database")


def _refuse_tenant(state: State, address: Address) -> None:
    """Refuse a URL that names a tenant where this user may not work for one."""
    if address.tenant is None or state.may_be_tenant:
        return
    role, known = quoted(address.tenant_role), state.may_be_tenant is not None
    first = "" if known else f"make the role with `penstock migrate` (or CREATE ROLE {role}), then "
    advice = f"{first}GRANT {role} TO {quoted(state.user)}"
    raise AccessDenied(address.name, f"user {state.user!r} may not work for a tenant", advice)


def _refuse_stranger(state: State, address: Address) -> None:
    """Say in one sentence who can do what this user cannot."""
    if state.schema > 0 and not state.is_owner:
        has = f"has schema version {state.schema}, and this penstock needs {latest()}"
        if state.schema == latest():
            needs = functions_version()
            has = f"has functions of penstock {state.functions}, and this one needs {needs}"
        raise StoreError(address.name, f"{has}; {MIGRATE}")
    if address.tenant is not None or not state.may_create:
        advice = (
            "grant it CREATE on the database, or have an owner run `penstock migrate` "
            "or what `penstock migrate --sql` prints"
        )
        raise AccessDenied(address.name, f"user {state.user!r} may not create tables in it", advice)


def _missing(state: State) -> Iterator[str]:
    """The steps that a schema lacks."""
    if not state.schema_exists:
        yield "CREATE SCHEMA {schema}"
    if state.schema < latest():
        yield from _tables_after(state.schema)
    if not are_current(state.functions):
        yield from _functions()
    if state.may_grant:
        yield from _grants(make_roles=state.may_make_roles)


def _tables_after(schema: int) -> Iterator[str]:
    yield from (text for number, text in migrations().items() if number > schema)
    yield _texts("access")["owner"]
    yield _remembering("schema", str(latest()))


def _functions() -> Iterator[str]:
    yield functions()
    yield _remembering("functions", functions_version())


def _grants(*, make_roles: bool) -> Iterator[str]:
    access = _texts("access")
    if make_roles:
        yield access["roles"]
    yield access["worker"]
    yield access["tenant"]
    yield _remembering("access", str(latest()))


def _how_to_make_roles(address: Address) -> str:
    return (
        f"have a database administrator run CREATE ROLE {quoted(address.worker_role)}; "
        f"CREATE ROLE {quoted(address.tenant_role)}; and then `penstock migrate` again"
    )


@cache
def _texts(folder: str) -> dict[str, str]:
    """The .sql files of a folder by their names, in the order of these."""
    found = {
        file.name.removesuffix(".sql"): file.read_text("utf-8")
        for file in files(_PACKAGE).joinpath(folder).iterdir()
        if file.name.endswith(".sql")
    }
    return dict(sorted(found.items()))


def _numbers(release: str) -> tuple[int, ...]:
    """`0.1.0` and what follows it, as numbers that compare."""
    return tuple(int(number) for number in re.findall(r"\d+", release.partition(" ")[0]))


def _remembering(name: str, value: str) -> str:
    return (
        f"INSERT INTO {{schema}}.penstock_meta VALUES ('{name}', '{value}') "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )


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
