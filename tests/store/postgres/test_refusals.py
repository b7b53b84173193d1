"""Whatever is wrong with a URL, a server or an account, one sentence says what to do about it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from random import Random

import psycopg
import pytest
from psycopg import errors

from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.job import KeyScope
from penstock.model.redact import without_password
from penstock.model.store_errors import (
    AccessDenied,
    ServerTooOld,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.contract import Store
from penstock.store.postgres import migrate as migrating
from penstock.store.postgres.connect import (
    Address,
    Connection,
    address_of,
    connect,
    is_direct,
)
from penstock.store.postgres.errors import is_repeatable, translate, translated
from penstock.store.postgres.migrate import migrate
from penstock.store.postgres.queries import queries
from proof.conformance.build import enqueue
from tests.store.postgres.conftest import PASSWORD, Logins

SECRET = "s3cr3t"
NAME = "postgresql://ann:***@host/work"


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port on which nobody listens."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def _said(error: PenstockError) -> str:
    """What it says, which is one sentence."""
    words = str(error)
    assert words.endswith(".")
    assert "\n" not in words
    assert SECRET not in words
    assert PASSWORD not in words
    return words


def test_a_url_says_where_the_installation_is() -> None:
    address = address_of(
        "postgresql://ann:s3cr3t@db:6543/work?schema=mail&tenant=acme&sslmode=require"
    )
    assert (address.schema, address.tenant) == ("mail", "acme")
    assert (address.worker_role, address.tenant_role) == ("mail_worker", "mail_tenant")
    given = {name: address.options[name] for name in ("user", "host", "port", "dbname", "sslmode")}
    assert given == {
        "user": "ann",
        "host": "db",
        "port": "6543",
        "dbname": "work",
        "sslmode": "require",
    }
    assert address.options["application_name"] == "penstock"
    assert (
        address.name == "postgresql://ann:***@db:6543/work?schema=mail&tenant=acme&sslmode=require"
    )


def test_what_a_url_leaves_open_has_a_default_that_it_may_change() -> None:
    address = address_of("postgresql:///work?application_name=mailer&connect_timeout=3")
    assert (address.schema, address.tenant) == ("penstock", None)
    assert address.options["application_name"] == "mailer"
    assert address.options["connect_timeout"] == "3"
    assert address.options["keepalives_idle"] == 10


def test_a_password_with_special_characters_is_read_as_it_was_meant() -> None:
    address = address_of("postgresql://ann:a%40b%2Fc%3F+d@db/work?schema=mail")
    assert address.options["password"] == "a@b/c?+d"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://ann:s3cr3t@db/work", "starts with postgresql://"),
        ("postgresql:work", "starts with postgresql://"),
        ("postgresql://ann:s3cr3t@db/work?shema=mail", "without ?shema="),
        ("postgresql://ann:s3/cr3t@db/work", "%2F for /"),
        ("postgresql://ann:s3cr3t@db:port/work", "%2F for /"),
        ("postgresql://ann:s3cr3t@[::1/work", "%2F for /"),
        ("postgresql://ann:s3?cr3t@db/work", "%2F for /"),
        ("postgresql://ann:12?cr3t@db/work", "%2F for /"),
        ("postgresql://db/work?schema=", "'schema'"),
        ("postgresql://db/work?schema=pg_work", "does not begin with pg_"),
        ("postgresql://db/work?schema=work%22;--", "'schema'"),
        ("postgresql://db/work?schema=" + "x" * 56, "up to 55"),
        ("postgresql://db/work?tenant=", "'tenant'"),
        ("postgresql://db/work?tenant=a%00b", "'tenant'"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        address_of(url)
    assert said in _said(refused.value)
    assert "cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cr3t@db/work", "postgresql://ann:***@db/work"),
        ("postgresql://ann@db/work", "postgresql://ann@db/work"),
        ("postgresql://ann:a/s3@cr3t@db/work", "postgresql://ann:***@db/work"),
        ("postgresql://db/work?password=s3cr3t&sslmode=off", "postgresql://db/work?sslmode=off"),
        ("postgresql://db/work?sslpassword=s3cr3t", "postgresql://db/work"),
        ("postgresql://ann:s3?cr3t@db/work", "postgresql://ann:***"),
        ("postgresql://ann:s/3?cr3t@db/work", "postgresql://ann:***"),
        ("postgresql://ann:12?cr3t@db/work", "postgresql://ann:***"),
        ("postgresql://ann:s3cr3t", "postgresql://ann:***"),
        ("postgresql://db:6543/work?tenant=a@b", "postgresql://db:6543/work?tenant=a@b"),
        ("postgresql://one:1,[::1]:2/work", "postgresql://one:1,[::1]:2/work"),
        ("postgresql:///work?host=/run", "postgresql:///work?host=/run"),
    ],
)
def test_no_error_shows_a_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert str(StoreError(without_password(url), "is gone")) == f"Store {shown} is gone."


def test_a_wrong_password_is_told(logins: Logins) -> None:
    url = logins.make().replace(PASSWORD, f"{SECRET}-wrong")
    with pytest.raises(AccessDenied, match="correct the user name and the password") as told:
        migrate(address_of(url))
    assert "password authentication failed" in _said(told.value)


def test_a_database_that_does_not_exist_is_told(address: Address) -> None:
    dbname = str(address.options["dbname"])
    with pytest.raises(AccessDenied, match=r"no database 'absent'.*create it") as told:
        migrate(address_of(address.url.replace(dbname, "absent")))
    _said(told.value)


def test_a_server_nobody_listens_at_is_told(dead_port: int) -> None:
    url = f"postgresql://ann:{SECRET}@127.0.0.1:{dead_port}/work"
    with pytest.raises(StoreUnavailable, match="Connection refused") as told:
        migrate(address_of(url))
    _said(told.value)


def test_a_host_that_does_not_exist_is_told() -> None:
    with pytest.raises(StoreUnavailable, match=r"absent\.invalid") as told:
        migrate(address_of(f"postgresql://ann:{SECRET}@absent.invalid/work"))
    _said(told.value)


def test_a_socket_that_does_not_exist_is_told() -> None:
    with pytest.raises(StoreUnavailable, match="No such file") as told:
        migrate(address_of(f"postgresql://ann:{SECRET}@/work?host=/nowhere"))
    _said(told.value)


def test_a_server_that_never_answers_is_told() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        url = f"postgresql://ann:{SECRET}@127.0.0.1:{port}/work?connect_timeout=2"
        with pytest.raises(StoreUnavailable, match="in time") as told:
            migrate(address_of(url))
        _said(told.value)


def test_a_server_that_is_too_old_is_refused(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "OLDEST", 99)
    with pytest.raises(ServerTooOld, match="upgrade it to 99") as told:
        migrate(address)
    _said(told.value)


def test_a_standby_is_refused(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = queries()["survey"].replace(b"pg_is_in_recovery()", b"true")
    monkeypatch.setitem(queries(), "survey", survey)
    with pytest.raises(StoreReadOnly, match="name the primary") as told:
        migrate(address)
    _said(told.value)


def test_a_database_of_another_encoding_is_refused(
    address: Address, admin: Connection, schema: str
) -> None:
    latin = f"latin_{schema}"
    how = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    admin.execute(f"CREATE DATABASE {latin} {how}".encode())
    try:
        with pytest.raises(StoreError, match=r"LATIN1.*UTF8") as told:
            migrate(address_of(address.url.replace(str(address.options["dbname"]), latin)))
        _said(told.value)
    finally:
        admin.execute(f"DROP DATABASE {latin}".encode())


def test_a_write_on_a_server_that_became_read_only_is_told(made: Address) -> None:
    with connect(made) as connection:
        connection.execute(made.begin(read_only=True))
        with pytest.raises(StoreReadOnly), translated(made.name):
            connection.execute("DELETE FROM jobs")
        connection.execute("ROLLBACK")


def test_a_connection_that_somebody_ended_is_told(made: Address, admin: Connection) -> None:
    with connect(made) as connection:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))
        with pytest.raises(StoreUnavailable) as told, translated(made.name):
            connection.execute("SELECT 1")
        _said(told.value)


def test_tables_that_are_missing_are_told(address: Address, admin: Connection) -> None:
    with pytest.raises(StoreError, match="run `penstock migrate`") as told, translated(NAME):
        admin.execute("SELECT * FROM nowhere")
    _said(told.value)


def test_a_role_without_rights_is_told(made: Address, logins: Logins, schema: str) -> None:
    with connect(address_of(logins.make())) as connection:
        with (
            pytest.raises(AccessDenied, match="grant it one of the roles") as told,
            translated(NAME),
        ):
            connection.execute(f"SELECT * FROM {schema}.jobs".encode())
        _said(told.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.DiskFull("no space"), StoreFull),
        (errors.TooManyConnections("sorry"), StoreUnavailable),
        (errors.AdminShutdown("bye"), StoreUnavailable),
        (errors.CrashShutdown("crash"), StoreUnavailable),
        (errors.CannotConnectNow("starting up"), StoreUnavailable),
        (errors.ConnectionFailure("gone"), StoreUnavailable),
        (errors.LockNotAvailable("locked"), StoreUnavailable),
        (errors.QueryCanceled("slow"), StoreUnavailable),
        (errors.OutOfMemory("memory"), StoreUnavailable),
        (errors.IdleInTransactionSessionTimeout("idle"), StoreUnavailable),
        (errors.SerializationFailure("met"), StoreUnavailable),
        (errors.DeadlockDetected("met"), StoreUnavailable),
        (errors.DataCorrupted("page"), StoreCorrupt),
        (errors.IndexCorrupted("page"), StoreCorrupt),
        (errors.InvalidPassword("no"), AccessDenied),
        (errors.SyntaxError("bug"), StoreError),
        (psycopg.OperationalError("the connection is lost"), StoreUnavailable),
        (psycopg.InterfaceError("the cursor is odd"), StoreUnavailable),
        (psycopg.ProgrammingError("odd"), StoreError),
    ],
)
def test_what_the_server_reports_is_said_in_penstock_s_words(
    error: psycopg.Error, expected: type[PenstockError]
) -> None:
    told = translate(NAME, error)
    assert type(told) is expected
    assert NAME in _said(told)


def test_only_what_the_server_asks_to_repeat_is_repeated() -> None:
    assert is_repeatable(errors.SerializationFailure())
    assert is_repeatable(errors.DeadlockDetected())
    assert not is_repeatable(errors.AdminShutdown())
    assert not is_repeatable(psycopg.OperationalError())


@pytest.mark.parametrize(
    ("query", "value", "said"),
    [
        ("SELECT %s::text", "a\0b", "NUL"),
        ("SELECT %s::text", "half \ud83d", "surrogate"),
        ("SELECT %s::json", "not json", "invalid input syntax for type json"),
        ("SELECT %s::json", "[" * 50_000, "stack depth"),
        ("SELECT %s::text::integer", "99999999999", "out of range"),
        ("SELECT at(%s)", 2**62, "out of range"),
        (
            "INSERT INTO pauses VALUES (now(), 'job', %s)",
            Random(1).randbytes(5_000).hex(),
            "index row",
        ),
    ],
)
def test_a_value_that_a_column_cannot_hold_is_told(
    tx: Connection, query: str, value: object, said: str
) -> None:
    with pytest.raises(InvalidOption, match=said) as told, translated(NAME), tx.transaction():
        tx.execute(query.encode(), (value,))
    _said(told.value)


async def test_text_that_is_no_unicode_fails_its_own_call_alone(store: Store) -> None:
    first, *refused, last = await asyncio.gather(
        enqueue(store),
        enqueue(store, payload='"\ud800"'),
        enqueue(store, created_by="\ud800"),
        enqueue(store, key="\ud800", key_scope=KeyScope.UNTIL_DONE),
        store.reader.get(["\ud800"]),
        enqueue(store, payload='"\\u0000"'),
        return_exceptions=True,
    )
    assert [type(error) for error in refused] == [InvalidOption] * 4
    assert len(await store.reader.get([str(first), str(last)])) == 2


def test_a_row_that_ends_while_another_waits_for_it_is_to_be_tried_again(
    made: Address, admin: Connection
) -> None:
    job = (
        "INSERT INTO jobs_live (id, type, queue, status, rank, priority, max_retries, timeout_ms, "
        "scheduled_at, created_at, updated_at, payload) VALUES ('0', 'mail', 'default', 'queued', "
        "0, 5, 3, 1, now(), now(), now(), '{}')"
    )
    with connect(made) as one, connect(made) as other:
        one.execute(made.begin())
        one.execute(job.encode())
        one.execute("COMMIT")
        one.execute(made.begin())
        one.execute("UPDATE jobs SET live = false, status = 'completed'")
        other.execute(made.begin())
        other.pgconn.send_query(b"SELECT id FROM jobs WHERE id = '0' FOR UPDATE")
        waiting = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        while not admin.execute(waiting, (other.info.backend_pid,)).fetchone():
            pass
        one.execute("COMMIT")
        result = other.pgconn.get_result()
        assert result is not None
        assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"40001"
        with suppress(psycopg.Error):
            other.pgconn.get_result()


def test_a_transaction_sets_nothing_that_outlives_it(made: Address) -> None:
    watched = (
        "SELECT name, setting FROM pg_settings WHERE name <> 'transaction_isolation' ORDER BY 1"
    )
    with connect(made) as connection:
        before = connection.execute(watched).fetchall()
        connection.execute(made.begin())
        assert connection.execute(watched).fetchall() != before
        connection.execute("COMMIT")
        assert connection.execute(watched).fetchall() == before


def test_a_commit_waits_for_the_disk_even_where_the_server_s_default_does_not(
    made: Address,
) -> None:
    for default, meant in (("off", "on"), ("remote_apply", "remote_apply")):
        with connect(made) as connection:
            connection.execute(f"SET synchronous_commit = {default}".encode())
            connection.execute(made.begin())
            assert connection.execute("SHOW synchronous_commit").fetchone() == (meant,)
            connection.execute("ROLLBACK")


def test_the_last_answer_of_a_beginning_is_the_server_s_time(made: Address) -> None:
    with connect(made) as connection:
        cursor = connection.execute(made.begin())
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        now = connection.execute("SELECT ms(clock_timestamp())").fetchone()
        assert row is not None
        assert now is not None
        assert 0 <= now[0] - row[0] < 60_000
        connection.execute("COMMIT")


def test_statements_are_prepared_only_where_no_pooler_is_in_between(
    made: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(made) as connection:
        assert is_direct(connection)
        assert connection.prepare_threshold is not None
    monkeypatch.setitem(queries(), "backend_pid", b"SELECT 0")
    with connect(made) as connection:
        assert connection.prepare_threshold is None
