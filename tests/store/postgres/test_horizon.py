"""A transaction that stays open too long, and the litter it causes, are seen and explained."""

from collections.abc import Iterator

import psycopg
import pytest

from penstock.store.postgres import inspect as watching
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.inspect import Horizon, horizon, inspect, warning
from penstock.store.postgres.queries import queries
from penstock.store.postgres.transaction import PostgresTransaction
from tests.store.postgres.conftest import Logins


@pytest.fixture
def looking(made: Address, admin: Connection) -> Iterator[PostgresTransaction]:
    admin.execute(made.begin())
    yield PostgresTransaction(admin, 0, 0)
    admin.execute("ROLLBACK")


@pytest.fixture
def reporter(made: Address) -> Iterator[Connection]:
    """A program that has begun to read and does not end."""
    address = address_of(f"{made.url}&application_name=reporter")
    with connect(address) as connection:
        connection.execute(address.begin(read_only=True))
        connection.execute("SELECT count(*) FROM jobs")
        yield connection
        connection.execute("ROLLBACK")


def _checks(tx: PostgresTransaction) -> dict[str, tuple[bool, str]]:
    return {name: (passed, detail) for name, passed, detail in inspect(tx).checks}


def test_nothing_is_said_while_nothing_is_open(looking: PostgresTransaction) -> None:
    assert warning(horizon(looking)) is None
    assert _checks(looking)["horizon"][0]


def test_the_oldest_transaction_is_named_with_what_to_do(
    reporter: Connection, looking: PostgresTransaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = horizon(looking)
    assert (found.pid, found.application) == (reporter.info.backend_pid, "reporter")
    assert found.state == "idle in transaction"
    assert 0 <= found.age_ms < 60_000
    assert warning(found) is None
    monkeypatch.setattr(watching, "OLD_MS", -1)
    passed, told = _checks(looking)["horizon"]
    assert not passed
    assert f"reporter (pid {found.pid}" in told
    assert f"pg_terminate_backend({found.pid})" in told


def test_a_transaction_that_sees_nothing_yet_holds_nothing_up(
    made: Address, looking: PostgresTransaction
) -> None:
    with connect(made) as idle:
        idle.execute(made.begin())
        assert horizon(looking).pid is None
        idle.execute("ROLLBACK")


def test_dead_rows_are_counted(made: Address, admin: Connection, schema: str) -> None:
    with connect(made) as writer:
        writer.execute(made.begin())
        writer.execute(
            "INSERT INTO jobs_live (id, type, queue, status, rank, priority, max_retries, "
            "timeout_ms, scheduled_at, created_at, updated_at, payload) SELECT n, 'mail', "
            "'default', 'queued', 0, 5, 3, 1, now(), now(), now(), '{}' "
            "FROM generate_series(1, 30) AS n"
        )
        writer.execute("COMMIT")
        writer.execute(f"UPDATE {schema}.jobs_live SET lease_until = now()".encode())
        writer.execute("SELECT pg_stat_force_next_flush()")
        writer.execute("SELECT 1")
    admin.execute(made.begin())
    found = horizon(PostgresTransaction(admin, 0, 0))
    admin.execute("ROLLBACK")
    assert (found.live_rows, found.dead_rows) == (30, 30)
    assert not found.is_littered


def test_far_more_dead_rows_than_living_ones_are_explained() -> None:
    told = warning(Horizon(live_rows=10, dead_rows=60_000))
    assert told is not None
    assert "60,000 dead rows" in told
    assert warning(Horizon(live_rows=1_000_000, dead_rows=60_000)) is None


def test_every_promise_is_kept_on_the_server_of_these_tests(looking: PostgresTransaction) -> None:
    checks = _checks(looking)
    assert {name for name, (passed, _) in checks.items() if not passed} == set()
    assert {"server", "commit", "fsync", "schema", "role", "replication", "horizon"} <= set(checks)


def test_a_table_without_row_level_security_is_found(looking: PostgresTransaction) -> None:
    looking.connection.execute("ALTER TABLE job_logs NO FORCE ROW LEVEL SECURITY")
    assert _checks(looking)["row security"] == (False, "no row-level security on job_logs")


def test_a_lease_without_an_owner_is_found(looking: PostgresTransaction) -> None:
    looking.connection.execute(
        "INSERT INTO jobs_live (id, type, queue, status, rank, priority, max_retries, timeout_ms, "
        "scheduled_at, created_at, updated_at, payload) VALUES ('0', 'mail', 'default', "
        "'in_progress', 0, 5, 3, 1, now(), now(), now(), '{}')"
    )
    assert _checks(looking)["leases"] == (False, "1 running jobs without an owner")


@pytest.fixture
def standby(made: Address) -> Iterator[None]:
    """A connection such as a standby makes, that nobody waits for."""
    connection = psycopg.Connection.connect(**made.options, replication="true", autocommit=True)
    yield
    connection.close()


@pytest.mark.parametrize(
    ("granted", "passed", "told"),
    [
        ("pg_read_all_stats", False, "0 of 1 standbys are waited for"),
        ("pg_read_all_settings", True, "grant it pg_read_all_stats"),
    ],
)
@pytest.mark.usefixtures("standby")
def test_whoever_may_not_see_which_standbys_are_waited_for_is_told_so_and_not_alarmed(
    made: Address,
    logins: Logins,
    monkeypatch: pytest.MonkeyPatch,
    granted: str,
    passed: bool,
    told: str,
) -> None:
    # What is really set would hold up every commit on the server of these tests.
    monkeypatch.setitem(queries(), "settings", b"SELECT '17', 'on', 'on', 'on', 'on', 'elsewhere'")
    login = logins.make("", f"GRANT {made.worker_role}, {granted} TO {{}}")
    with connect(address_of(login)) as connection:
        connection.execute(made.begin())
        found = _checks(PostgresTransaction(connection, 0, 0))["replication"]
        connection.execute("ROLLBACK")
    assert found[0] is passed
    assert told in found[1]


def test_slow_claims_are_told_of(
    looking: PostgresTransaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "SLOW_MS", -1)
    passed, told = _checks(looking)["horizon"]
    assert not passed
    assert "to find out where jobs wait" in told


@pytest.mark.parametrize(("walks", "least"), [([0.09, 0.08, 0.002], 2), ([0.09, 0.08, 0.07], 70)])
def test_a_claim_that_was_slow_only_because_the_machine_was_busy_is_not_told_of(
    looking: PostgresTransaction, monkeypatch: pytest.MonkeyPatch, walks: list[float], least: int
) -> None:
    moments = iter([moment for seconds in walks for moment in (0.0, seconds)])
    monkeypatch.setattr(watching, "perf_counter", lambda: next(moments))
    found = horizon(looking)
    assert round(found.walk_ms) == least
    assert (warning(found) is None) == (least == 2)
