"""Migrations run under a lock, all or nothing, and touch nothing but their own schema."""

import threading
from typing import Any

import psycopg
import pytest

from penstock.model.store_errors import (
    AccessDenied,
    NotAPenstockStore,
    SchemaTooNew,
    StoreError,
)
from penstock.store.postgres import migrate as migrating
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.migrate import latest, migrate, migrations, sql_of
from tests.store.postgres.conftest import Logins

CATALOG = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
    coalesce(pg_get_expr(d.adbin, d.adrelid), ''), coalesce(col_description(c.oid, a.attnum), '')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = %(schema)s::text::regnamespace
UNION ALL
SELECT 'relation', relname, relkind::text, relrowsecurity::text, relforcerowsecurity::text,
    coalesce(reloptions::text, ''), coalesce(relacl::text, '')
FROM pg_class WHERE relnamespace = %(schema)s::text::regnamespace AND relkind <> 't'
UNION ALL
SELECT 'index', tablename, indexname, indexdef, '', '', ''
FROM pg_indexes WHERE schemaname = %(schema)s::text
UNION ALL
SELECT 'policy', tablename, policyname, roles::text, cmd, coalesce(qual, ''),
    coalesce(with_check, '')
FROM pg_policies WHERE schemaname = %(schema)s::text
UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid), coalesce(obj_description(oid), ''), '', '', ''
FROM pg_proc WHERE pronamespace = %(schema)s::text::regnamespace
ORDER BY 1, 2, 3, 4
"""


def catalog(connection: Connection, schema: str) -> list[tuple[Any, ...]]:
    rows = connection.execute(CATALOG, {"schema": schema}).fetchall()
    return [tuple(str(value).replace(schema, "SCHEMA") for value in row) for row in rows]


def tables(connection: Connection, schema: str) -> set[str]:
    found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))
    return {str(name) for (name,) in found}


def test_an_empty_database_gets_the_newest_schema(address: Address) -> None:
    assert migrate(address) == (0, latest())


def test_migrating_again_changes_nothing(made: Address, admin: Connection) -> None:
    state = """
        SELECT oid, xmin::text FROM pg_class WHERE relnamespace = %(schema)s::regnamespace
        UNION ALL
        SELECT oid, xmin::text FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
        ORDER BY 1
    """
    before = admin.execute(state, {"schema": made.schema}).fetchall()
    assert migrate(made) == (latest(), latest())
    assert admin.execute(state, {"schema": made.schema}).fetchall() == before


def test_several_may_migrate_an_empty_database_at_the_same_moment(address: Address) -> None:
    answers: list[tuple[int, int]] = []
    together = threading.Barrier(4)

    def one() -> None:
        together.wait()
        answers.append(migrate(address))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(0, latest()), *[(latest(), latest())] * 3]


def test_two_installations_share_a_database_and_nothing_else(
    made: Address, admin: Connection, schema: str
) -> None:
    other = address_of(made.url.replace(schema, f"{schema}b"))
    admin.execute(f"INSERT INTO {schema}.pauses VALUES (now(), 'queue', 'q')".encode())
    try:
        assert migrate(other) == (0, latest())
        assert admin.execute(f"SELECT 1 FROM {schema}b.pauses".encode()).fetchall() == []
        assert catalog(admin, other.schema) != []
    finally:
        admin.execute(f"DROP SCHEMA {schema}b CASCADE".encode())
        admin.execute(f"DROP ROLE {schema}b_worker, {schema}b_tenant".encode())


def test_tables_outside_the_schema_are_left_alone(address: Address, admin: Connection) -> None:
    admin.execute("CREATE TABLE public.jobs (title text); INSERT INTO public.jobs VALUES ('baker')")
    before = catalog(admin, "public")
    migrate(address)
    assert catalog(admin, "public") == before
    assert admin.execute("SELECT * FROM public.jobs").fetchall() == [("baker",)]
    admin.execute("DROP TABLE public.jobs")


def test_a_schema_with_a_jobs_table_of_its_own_is_refused_and_left_alone(
    address: Address, admin: Connection, schema: str
) -> None:
    admin.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.jobs (title text)".encode())
    with pytest.raises(NotAPenstockStore, match=r"table 'jobs'.*\?schema="):
        migrate(address)
    assert tables(admin, schema) == {"jobs"}


def test_a_schema_that_was_made_beforehand_is_used(
    address: Address, admin: Connection, schema: str
) -> None:
    admin.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.notes (word text)".encode())
    assert migrate(address) == (0, latest())
    assert tables(admin, schema) > {"notes", "jobs"}


def test_a_schema_of_a_newer_penstock_is_refused_and_left_alone(
    made: Address, admin: Connection, schema: str
) -> None:
    newer = f"UPDATE {schema}.penstock_meta SET value = '99' WHERE name = 'schema'"
    admin.execute(newer.encode())
    before = catalog(admin, schema)
    with pytest.raises(SchemaTooNew, match="99"):
        migrate(made)
    assert catalog(admin, schema) == before


def test_a_migration_that_fails_leaves_nothing(
    address: Address, admin: Connection, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = migrations() | {latest() + 1: "CREATE TABLE {schema}.half (id text); nonsense"}
    monkeypatch.setattr(migrating, "migrations", lambda: broken)
    with pytest.raises(StoreError, match="nonsense"):
        migrate(address)
    assert tables(admin, schema) == set()
    monkeypatch.undo()
    assert migrate(address) == (0, latest())


def test_an_upgrade_that_fails_leaves_the_old_version_and_its_rows(
    made: Address, admin: Connection, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.execute(f"INSERT INTO {schema}.pauses VALUES (now(), 'queue', 'q')".encode())
    before = catalog(admin, schema)
    broken = migrations() | {latest() + 1: "DELETE FROM {schema}.pauses; nonsense"}
    monkeypatch.setattr(migrating, "migrations", lambda: broken)
    with pytest.raises(StoreError, match="nonsense"):
        migrate(made)
    monkeypatch.undo()
    assert catalog(admin, schema) == before
    assert len(admin.execute(f"SELECT 1 FROM {schema}.pauses".encode()).fetchall()) == 1
    assert migrate(made) == (latest(), latest())


def test_an_upgrade_runs_only_what_is_new(
    made: Address, admin: Connection, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = migrations() | {latest() + 1: "CREATE TABLE {schema}.more (id text)"}
    before = latest()
    monkeypatch.setattr(migrating, "migrations", lambda: more)
    assert migrate(made) == (before, before + 1)
    assert "more" in tables(admin, schema)


CHANGED = """
CREATE OR REPLACE FUNCTION {schema}.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE RETURN 7;
"""


def _clock(admin: Connection, schema: str) -> int:
    row = admin.execute(f"SELECT {schema}.clock_ms()".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _change_functions(monkeypatch: pytest.MonkeyPatch, release: str = "") -> None:
    """Have this penstock bring other functions, as a newer or an older one would."""
    text = f"{migrating.functions()}\n{CHANGED}"
    monkeypatch.setattr(migrating, "functions", lambda: text)
    if release:
        monkeypatch.setattr(migrating, "release", lambda: release)


def test_functions_that_changed_are_installed_without_a_migration(
    made: Address, admin: Connection, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _change_functions(monkeypatch)
    assert migrate(made) == (latest(), latest())
    assert _clock(admin, schema) == 7
    monkeypatch.undo()
    assert migrate(made) == (latest(), latest())
    assert _clock(admin, schema) > 7


def test_functions_of_a_newer_penstock_are_left_alone(
    made: Address, admin: Connection, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _change_functions(monkeypatch, "999.10.0")
    migrate(made)
    monkeypatch.setattr(migrating, "release", lambda: "999.9.1")
    monkeypatch.setattr(migrating, "functions", lambda: "")
    assert migrate(made) == (latest(), latest())
    assert _clock(admin, schema) == 7


def test_a_worker_is_told_when_the_functions_are_behind_and_not_when_they_are_ahead(
    made: Address, logins: Logins, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = address_of(logins.make("", f"GRANT {schema}_worker TO {{}}"))
    _change_functions(monkeypatch, "999.0.0")
    with pytest.raises(StoreError, match=r"functions of penstock .* needs 999.*`penstock migrate`"):
        migrate(worker)
    migrate(made)
    assert migrate(worker) == (latest(), latest())
    monkeypatch.undo()
    assert migrate(worker) == (latest(), latest())


def test_the_printed_sql_makes_the_same_schema(
    made: Address, admin: Connection, schema: str
) -> None:
    migrated = catalog(admin, schema)
    admin.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    admin.execute(sql_of(schema).encode())
    assert catalog(admin, schema) == migrated
    assert migrate(made) == (latest(), latest())


def test_the_printed_sql_leaves_no_place_to_fill_in() -> None:
    printed = sql_of("work")
    assert not any(place in printed for place in ("{schema}", "{worker}", "{tenant}", "{from "))
    assert 'CREATE SCHEMA IF NOT EXISTS "work"' in printed
    assert 'CREATE ROLE "work_tenant"' in printed


def test_a_user_without_the_right_to_create_is_told_who_has_it(
    address: Address, admin: Connection, logins: Logins, schema: str
) -> None:
    with pytest.raises(
        AccessDenied, match=r"may not create tables.*penstock migrate --sql"
    ) as told:
        migrate(address_of(logins.make()))
    assert "correct-horse" not in str(told.value)
    assert tables(admin, schema) == set()


def test_a_user_without_the_right_to_make_roles_gets_the_tables_and_later_the_roles(
    address: Address, admin: Connection, logins: Logins, schema: str
) -> None:
    owner = address_of(logins.owner())
    assert migrate(owner) == (0, latest())
    assert _granted(admin, schema) is None
    with connect(owner) as own:
        own.execute(f"INSERT INTO {schema}.pauses VALUES (now(), 'queue', 'q')".encode())
        assert own.execute(f"SELECT name FROM {schema}.pauses".encode()).fetchall() == [("q",)]
    admin.execute(f"CREATE ROLE {schema}_worker; CREATE ROLE {schema}_tenant".encode())
    assert migrate(owner) == (latest(), latest())
    assert _granted(admin, schema) == str(latest())


def test_a_user_who_may_make_roles_needs_no_administrator(
    address: Address, admin: Connection, logins: Logins, schema: str
) -> None:
    owner = logins.owner("CREATEROLE")
    assert migrate(address_of(owner)) == (0, latest())
    assert _granted(admin, schema) == str(latest())
    assert migrate(address_of(f"{owner}&tenant=acme")) == (latest(), latest())


def test_a_worker_opens_an_up_to_date_schema_and_changes_no_table(
    made: Address, logins: Logins, schema: str
) -> None:
    worker = address_of(logins.make("", f"GRANT {schema}_worker TO {{}}"))
    assert migrate(worker) == (latest(), latest())
    with connect(worker) as connection:
        for statement in ("CREATE TABLE {0}.mine (id text)", "DROP TABLE {0}.jobs"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.format(schema).encode())


def test_a_worker_is_told_when_the_schema_is_behind(
    made: Address, logins: Logins, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = address_of(logins.make("", f"GRANT {schema}_worker TO {{}}"))
    more = migrations() | {latest() + 1: "CREATE TABLE {schema}.more (id text)"}
    monkeypatch.setattr(migrating, "migrations", lambda: more)
    with pytest.raises(StoreError, match=r"has schema version \d+.*run `penstock migrate` as the"):
        migrate(worker)


def _granted(admin: Connection, schema: str) -> str | None:
    meta = f"SELECT value FROM {schema}.penstock_meta WHERE name = 'access'"
    row = admin.execute(meta.encode()).fetchone()
    return None if row is None else str(row[0])
