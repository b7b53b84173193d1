"""A connection of one tenant sees and changes nothing of another."""

from collections.abc import Iterator

import psycopg
import pytest

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge
from penstock.model.errors import ParentNotFound
from penstock.model.job import NewJob
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.model.store_errors import AccessDenied
from penstock.store.contract import JobFilter
from penstock.store.open import open_store
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.migrate import migrate
from tests.store.postgres.conftest import Logins

OWN_BY_TENANT = {
    *("jobs", "jobs_live", "jobs_ended", "job_keys", "dead_letter_jobs", "order_lines"),
    "job_schedules",
}
OWN_TO_ERASE = {"job_changes"}
OWN_BY_JOB = {"job_executions", "job_logs", "job_dependencies"}
OF_THE_INSTALLATION = {
    *("pauses", "limits", "slots", "rate_starts", "breakers", "workers", "leaders", "metrics"),
    *("metric_deltas", "audit_log", "records", "followers", "penstock_meta"),
}
SHOWN_TO_ALL = {"workers", "penstock_meta"}
ROWS = """
INSERT INTO jobs (id, type, queue, tenant_id, status, live, rank, priority, max_retries, timeout_ms,
    scheduled_at, created_at, updated_at, payload)
SELECT name || number, 'mail', 'default', name, status, status = 'queued', 0, 5, 3, 1, now(), now(),
    now(), '{}'
FROM unnest(ARRAY['acme', 'globex', '']) AS name,
    (VALUES (1, 'queued'), (2, 'completed')) AS made (number, status);
INSERT INTO job_executions (job_id, fence, status, started_at, ended_at)
SELECT id, 1, 'completed', now(), now() FROM jobs;
INSERT INTO job_logs (job_id, fence, at, level, message) SELECT id, 1, now(), 'info', '' FROM jobs;
INSERT INTO job_keys (tenant_id, type, key, job_id, scope)
SELECT tenant_id, type, id, id, 'forever' FROM jobs;
INSERT INTO job_dependencies (child_id, parent_id, kind, on_failure, on_requeue, created_at)
SELECT tenant_id || '1', tenant_id || '2', 'success', 'cancel', 'restore', now()
FROM jobs WHERE live;
INSERT INTO order_lines SELECT tenant_id, 'line', id FROM jobs WHERE live;
INSERT INTO dead_letter_jobs (job_id, type, queue, tenant_id, reason, fingerprint, attempts,
    rescues, snapshot, executions, created_at)
SELECT id, type, queue, tenant_id, 'poison', 'f', 0, 0, '{}', '[]', now() FROM jobs WHERE live;
INSERT INTO job_schedules (id, name, type, kind, tenant_id, payload_template, options, zone,
    misfire, enabled, created_at, updated_at)
SELECT id, 'nightly', type, 'cron', tenant_id, '{}', '{}', 'UTC', 'one', true, now(), now()
FROM jobs WHERE live;
INSERT INTO pauses (scope, name, created_at)
SELECT 'tenant', tenant_id, now() FROM jobs WHERE live
UNION ALL SELECT 'job', id, now() FROM jobs WHERE live
UNION ALL SELECT 'queue', 'default', now();
INSERT INTO limits (scope, name, kind, capacity, updated_at)
SELECT 'tenant', tenant_id, 'rate', 1, now() FROM jobs WHERE live
UNION ALL SELECT 'tenant', '*', 'rate', 1, now()
UNION ALL SELECT 'key', 'bank', 'rate', 1, now();
INSERT INTO breakers (name, types, failures, cool_down_ms, updated_at, probe_id)
SELECT id, '{mail}', 1, 1, now(), id FROM jobs WHERE live;
INSERT INTO slots VALUES (1, 'tenant', 'globex', 'host:1');
INSERT INTO rate_starts VALUES ('tenant', 'globex', '[]');
INSERT INTO leaders VALUES (now(), 'upkeep', 'host:1');
INSERT INTO metrics VALUES (10000, 0, 1, 'mail', 'default', 'completed');
INSERT INTO metric_deltas (bucket, sums) VALUES (0, '[]');
INSERT INTO audit_log VALUES (1, now(), 'ann', 'job.pause', 'job:1', 'globex', '{}', '', ''),
    (2, now(), 'bob', 'job.pause', 'job:2', 'acme', '{}', '', ''),
    (3, now(), 'ann', 'queue.pause', 'queue:q', '', '{}', '', '');
INSERT INTO records VALUES (1, now(), NULL, 'token', 'acme', '{}');
INSERT INTO followers VALUES ('bank', '{completed}');
INSERT INTO job_changes (fence, at, follower, job_id, type, queue, tenant_id, status)
SELECT 1, now(), 'bank', id, type, queue, tenant_id, status FROM jobs;
INSERT INTO workers VALUES (now(), now(), 0, 0, 0, 0, 0, 1, 1, 0, NULL, 'host:1', 'host:1', 'host',
    'running', NULL, '{mail}');
"""


@pytest.fixture(scope="module")
def filled(shared: Address, shared_admin: Connection) -> Address:
    shared_admin.execute(shared.begin())
    shared_admin.execute(ROWS)
    shared_admin.execute("COMMIT")
    return shared


@pytest.fixture(scope="module")
def acme_url(filled: Address, shared_logins: Logins) -> str:
    """A user who is a tenant and nothing else."""
    return shared_logins.make("", f"GRANT {filled.tenant_role} TO {{}}") + "&tenant=acme"


@pytest.fixture
def acme(acme_url: str) -> Iterator[Connection]:
    """A transaction of the tenant acme that leaves nothing behind."""
    address = address_of(acme_url)
    with connect(address) as connection:
        connection.execute(address.begin())
        yield connection
        connection.execute("ROLLBACK")


def _tables(connection: Connection) -> set[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') "
        "AND relnamespace = current_schema()::regnamespace"
    )
    return {str(name) for (name,) in found}


def _count(connection: Connection, table: str, where: str = "true") -> int:
    row = connection.execute(f"SELECT count(*) FROM {table} WHERE {where}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _is_refused(connection: Connection, statement: str) -> bool:
    try:
        with connection.transaction():
            return connection.execute(statement.encode()).rowcount == 0
    except psycopg.errors.InsufficientPrivilege:
        return True


def test_these_tests_know_every_table(filled: Address, tx: Connection) -> None:
    assert _tables(tx) == OWN_BY_TENANT | OWN_TO_ERASE | OWN_BY_JOB | OF_THE_INSTALLATION
    assert all(_count(tx, table) > 0 for table in _tables(tx))


def test_every_table_has_row_level_security_even_for_its_owner(tx: Connection) -> None:
    secured = tx.execute(
        "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity "
        "AND relnamespace = current_schema()::regnamespace"
    )
    assert {str(name) for (name,) in secured} == _tables(tx)


@pytest.mark.parametrize("policy", ["owner", "worker"])
def test_every_table_has_a_policy_for_owner_and_worker(tx: Connection, policy: str) -> None:
    found = tx.execute(
        "SELECT tablename FROM pg_policies WHERE schemaname = current_schema() "
        "AND policyname = %s AND qual = 'true' AND cmd = 'ALL'",
        (policy,),
    )
    assert {str(name) for (name,) in found} == _tables(tx)


def test_every_policy_for_tenants_asks_which_tenant_or_shows_nobody_s_rows(
    shared: Address, tx: Connection
) -> None:
    found = tx.execute(
        "SELECT tablename FROM pg_policies WHERE schemaname = current_schema() "
        "AND %s = ANY(roles) AND coalesce(qual, with_check) !~ %s",
        (shared.tenant_role, r"tenant\(\)|is_foreign\("),
    )
    assert {str(name) for (name,) in found} == SHOWN_TO_ALL


@pytest.mark.parametrize("table", sorted(OWN_BY_TENANT | OWN_TO_ERASE))
def test_a_tenant_sees_its_own_rows_only(acme: Connection, table: str) -> None:
    assert _count(acme, table) > 0
    assert _count(acme, table, "tenant_id <> 'acme'") == 0


@pytest.mark.parametrize(
    ("table", "job"),
    [("job_executions", "job_id"), ("job_logs", "job_id"), ("job_dependencies", "child_id")],
)
def test_a_tenant_sees_what_belongs_to_its_own_jobs_only(
    acme: Connection, table: str, job: str
) -> None:
    assert _count(acme, table) > 0
    assert _count(acme, table, f"{job} NOT LIKE 'acme_'") == 0


@pytest.mark.parametrize("table", sorted(OF_THE_INSTALLATION - SHOWN_TO_ALL))
def test_a_tenant_sees_of_the_installation_only_what_concerns_it(
    acme: Connection, table: str
) -> None:
    seen = {str(row) for row in acme.execute(f"SELECT * FROM {table}".encode())}
    assert not any("globex" in row or "ann" in row or "bank" in row for row in seen)
    expected = {"pauses": 3, "limits": 2, "breakers": 1, "audit_log": 1}
    assert len(seen) == expected.get(table, 0)


@pytest.mark.parametrize("table", sorted(OWN_BY_TENANT | OWN_TO_ERASE | OWN_BY_JOB))
def test_a_tenant_deletes_its_own_rows_only(acme: Connection, table: str) -> None:
    own = _count(acme, table)
    assert acme.execute(f"DELETE FROM {table}".encode()).rowcount == own


@pytest.mark.parametrize("table", sorted(OWN_BY_TENANT))
def test_a_tenant_cannot_give_its_rows_to_another(acme: Connection, table: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        acme.execute(f"UPDATE {table} SET tenant_id = 'initech'".encode())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET priority = 1 WHERE id = 'globex1'",
        "UPDATE jobs_live SET priority = 1 WHERE id = 'globex1'",
        "UPDATE jobs SET priority = 1 WHERE tenant_id = ''",
        "INSERT INTO jobs SELECT * FROM jobs WHERE id = 'globex1'",
        "INSERT INTO job_keys VALUES (NULL, 'globex', 'mail', 'k', 'acme1', 'forever')",
        "INSERT INTO job_logs VALUES (9, 1, now(), 'globex1', 'info', '')",
        "INSERT INTO job_executions VALUES ('globex1', 9, now(), now(), 1, 1, 1, 1, 'completed')",
        (
            "INSERT INTO job_dependencies VALUES "
            "(now(), NULL, 0, 'acme1', 'globex1', 'data', '', NULL, 'cancel', 'restore')"
        ),
        "INSERT INTO pauses VALUES (now(), 'job', 'globex2')",
        "INSERT INTO pauses VALUES (now(), 'queue', 'other')",
        "DELETE FROM pauses WHERE scope IN ('tenant', 'queue')",
        "UPDATE pauses SET reason = 'mine' WHERE scope = 'queue'",
        "UPDATE limits SET capacity = 1000",
        "DELETE FROM limits",
        "DELETE FROM workers",
        "UPDATE breakers SET opened_at = NULL",
        "DELETE FROM metric_deltas",
        "INSERT INTO job_keys VALUES (NULL, 'acme', 'mail', 'k', 'globex1', 'forever')",
        "UPDATE job_keys SET job_id = 'globex1'",
        "INSERT INTO order_lines VALUES ('acme', 'another', 'globex1')",
        "UPDATE order_lines SET last_id = 'globex1'",
        "UPDATE jobs SET parent_job_id = 'globex1'",
        "UPDATE jobs_live SET parent_job_id = 'globex1'",
        *(
            f"INSERT INTO metric_deltas (bucket, sums) VALUES (0, '{sums}')"
            for sums in (
                '[["mail", "default", "completed@globex", 1]]',
                '[["mail", "default", "completed", -1]]',
                '[["mail", "default", "completed", 1e400]]',
                '[["mail", "default", "completed", "many"]]',
                '[["mail", "default", "completed"]]',
                "[1]",
                '"nothing that a roll-up could read"',
            )
        ),
        "INSERT INTO metrics VALUES (10000, 1, 1, 'mail', 'default', 'completed')",
        "UPDATE penstock_meta SET value = '0'",
        "DELETE FROM audit_log",
        "UPDATE audit_log SET actor = 'carl'",
        "INSERT INTO audit_log VALUES (4, now(), 'a', 'b', 'c', 'acme', '{}', '', '')",
        "INSERT INTO records VALUES (1, now(), NULL, 'token', 'mine', '{}')",
        "DELETE FROM records",
        "INSERT INTO followers VALUES ('mine', '{completed}')",
        "DELETE FROM followers",
        "SELECT record_changes()",
        "UPDATE job_changes SET tenant_id = 'globex'",
        (
            "INSERT INTO job_changes (fence, at, follower, job_id, type, queue, tenant_id, status) "
            "VALUES (1, now(), 'bank', 'acme1', 'mail', 'default', 'acme', 'completed')"
        ),
        "TRUNCATE jobs",
    ],
)
def test_a_tenant_changes_nothing_that_is_not_its_own(acme: Connection, statement: str) -> None:
    assert _is_refused(acme, statement)


def test_a_tenant_works_with_its_own_jobs(acme: Connection) -> None:
    made = (
        "INSERT INTO jobs (id, type, queue, tenant_id, status, rank, priority, max_retries, "
        "timeout_ms, scheduled_at, created_at, updated_at, payload) VALUES ('acme3', 'mail', "
        "'default', 'acme', 'pending', 0, 5, 3, 1, now(), now(), now(), '{}')"
    )
    assert acme.execute(made.encode()).rowcount == 1
    edge = (
        "INSERT INTO job_dependencies (child_id, parent_id, kind, on_failure, on_requeue, "
        "created_at) VALUES ('acme3', 'acme1', 'data', 'cancel', 'restore', now())"
    )
    assert acme.execute(edge.encode()).rowcount == 1
    ended = "UPDATE jobs SET live = false, status = 'cancelled' WHERE id = 'acme1'"
    assert acme.execute(ended.encode()).rowcount == 1
    assert acme.execute("DELETE FROM pauses WHERE scope = 'job'").rowcount == 1


@pytest.mark.parametrize("table", ["jobs", "jobs_live"])
def test_a_tenant_cannot_take_the_id_of_another_s_job_and_so_its_history(
    acme: Connection, table: str
) -> None:
    copy = f"INSERT INTO {table} SELECT (jsonb_populate_record(job, %s)).* FROM jobs_live AS job"
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        acme.execute(copy.encode(), ('{"id":"globex2"}',))


@pytest.mark.parametrize("table", ["jobs", "jobs_live"])
def test_a_tenant_cannot_make_a_child_of_another_s_job(acme: Connection, table: str) -> None:
    copy = f"INSERT INTO {table} SELECT (jsonb_populate_record(job, %s)).* FROM jobs_live AS job"
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        acme.execute(copy.encode(), ('{"id":"acme9","parent_job_id":"globex1"}',))


def test_a_tenant_ends_a_job_that_somebody_else_made_a_child_of_another_s(tx: Connection) -> None:
    tx.execute("UPDATE jobs SET parent_job_id = 'globex1' WHERE id = 'acme1'")
    role = tx.execute("SELECT current_schema() || '_tenant'").fetchone()
    assert role is not None
    tx.execute(f"SET LOCAL ROLE {role[0]}; SET LOCAL penstock.tenant = 'acme'".encode())
    ended = "UPDATE jobs SET live = false, status = 'cancelled' WHERE id = 'acme1'"
    assert tx.execute(ended.encode()).rowcount == 1


def test_a_tenant_counts_its_own_jobs(acme: Connection) -> None:
    sums = '[["mail", "default", "cancelled", 1], ["mail", "default", "cancelled@acme", 1]]'
    counted = "INSERT INTO metric_deltas (bucket, sums) VALUES (0, %s::jsonb)"
    assert acme.execute(counted, (sums,)).rowcount == 1


def test_a_tenant_cannot_wait_with_a_grave_for_another_s_job(acme: Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        acme.execute("UPDATE dead_letter_jobs SET job_id = 'globex2'")


def test_a_tenant_cannot_pause_a_queue_that_is_named_like_its_job(acme: Connection) -> None:
    acme.execute("UPDATE jobs SET id = 'slow' WHERE id = 'acme1'")
    assert _is_refused(acme, "INSERT INTO pauses VALUES (now(), 'queue', 'slow')")


def test_the_view_and_the_functions_show_a_tenant_its_own_jobs_only(acme: Connection) -> None:
    assert _count(acme, "job_queue") == 2
    row = acme.execute("SELECT total_jobs FROM get_job_statistics()").fetchone()
    assert row == (1,)  # the ended one of these tests has no time of its end
    assert acme.execute("SELECT check_dependencies_satisfied('globex1')").fetchone() == (None,)


def test_without_a_tenant_the_role_sees_nothing_not_even_the_jobs_of_none(acme_url: str) -> None:
    address = address_of(acme_url.removesuffix("&tenant=acme"))
    with connect(address) as connection:
        connection.execute(address.begin())
        assert _count(connection, "jobs") == 0
        connection.execute("SET LOCAL penstock.tenant = 'acme'")
        assert _count(connection, "jobs") == 2
        connection.execute("COMMIT")
        connection.execute(address.begin())
        assert _count(connection, "jobs") == 0
        connection.execute("ROLLBACK")


def test_the_owner_s_own_connection_works_for_a_tenant_when_its_url_says_so(
    filled: Address,
) -> None:
    address = address_of(f"{filled.url}&tenant=globex")
    with connect(address) as connection:
        connection.execute(address.begin())
        assert _count(connection, "jobs") == _count(connection, "jobs", "tenant_id = 'globex'") == 2
        connection.execute("COMMIT")
        assert _count(connection, f"{filled.schema}.jobs") == 6


def test_a_tenant_s_name_is_only_ever_a_name(filled: Address) -> None:
    address = address_of(f"{filled.url}&tenant=x%27;%20SET%20ROLE%20none;%20--")
    with connect(address) as connection:
        connection.execute(address.begin())
        assert _count(connection, "jobs") == 0
        assert connection.execute("SELECT tenant()").fetchone() == ("x'; SET ROLE none; --",)
        connection.execute("ROLLBACK")


def test_an_owner_who_is_no_superuser_sees_all_rows(address: Address, logins: Logins) -> None:
    owner = address_of(logins.owner("CREATEROLE"))
    migrate(owner)
    with connect(owner) as connection:
        connection.execute(owner.begin())
        connection.execute(ROWS)
        assert all(_count(connection, table) > 0 for table in _tables(connection))
        assert connection.execute("UPDATE jobs SET priority = 1").rowcount == 6
        connection.execute("ROLLBACK")


def test_a_worker_sees_and_changes_the_rows_of_all_tenants(
    filled: Address, shared_logins: Logins
) -> None:
    address = address_of(shared_logins.make("", f"GRANT {filled.worker_role} TO {{}}"))
    with connect(address) as connection:
        connection.execute(address.begin())
        assert all(_count(connection, table) > 0 for table in _tables(connection))
        assert connection.execute("UPDATE jobs SET priority = 1").rowcount == 6
        connection.execute("ROLLBACK")


def test_a_user_who_is_no_member_is_told_how_to_become_one(
    filled: Address, shared_logins: Logins
) -> None:
    with pytest.raises(AccessDenied, match=f'GRANT "{filled.tenant_role}" TO'):
        migrate(address_of(shared_logins.make() + "&tenant=acme"))


async def test_a_store_opened_for_one_tenant_works_for_it_alone(made: Address) -> None:
    everybody, acme = open_store(made.url), open_store(f"{made.url}&tenant=acme")
    await everybody.open()
    await everybody.jobs.enqueue([NewJob(id="theirs", type="mail", tenant_id="globex")])
    await acme.open()
    try:
        ours = [NewJob(id=name, type="mail", tenant_id="acme", key=name) for name in ("one", "two")]
        await acme.jobs.enqueue(ours)
        last = NewJob(id="last", type="mail", tenant_id="acme", after=(Edge(parent_id="one"),))
        await acme.jobs.enqueue([last])
        assert {job.id for job in await acme.reader.find(JobFilter())} == {"one", "two", "last"}
        assert await acme.reader.get(["theirs"]) == []
        assert await acme.jobs.cancel(["one"], "no longer needed") == {"one": "cancelled"}
        assert await acme.jobs.requeue(["one"]) == ["one"]
        standing = await acme.reader.standing("last")
        assert standing is not None
        assert [edge.edge.parent_id for edge in standing.waits_for] == ["one"]
        with pytest.raises(JobNotFound):
            await acme.jobs.cancel(["theirs"], "not theirs")
        spy = NewJob(id="spy", type="mail", tenant_id="acme", after=(Edge(parent_id="theirs"),))
        with pytest.raises(ParentNotFound):
            await acme.jobs.enqueue([spy])
        with pytest.raises(AccessDenied, match="not its tenant's"):
            await acme.jobs.enqueue([NewJob(id="gift", type="mail", tenant_id="globex")])
        with pytest.raises(AccessDenied, match="not its tenant's"):
            await acme.controls.pause(PauseScope.QUEUE, "default")
        assert len(await everybody.reader.find(JobFilter())) == 4
    finally:
        await acme.close()
        await everybody.close()


async def test_what_a_tenant_does_is_told_to_a_follower_that_it_cannot_see(
    made: Address, logins: Logins
) -> None:
    worker = open_store(logins.make("", f"GRANT {made.worker_role} TO {{}}"))
    acme = open_store(logins.make("", f"GRANT {made.tenant_role} TO {{}}") + "&tenant=acme")
    await worker.open()
    await acme.open()
    try:
        await worker.changes.follow("bank.ended", [Status.QUEUED, Status.CANCELLED])
        await worker.jobs.enqueue([NewJob(id="theirs", type="mail", tenant_id="globex")])
        await acme.jobs.enqueue([NewJob(id="ours", type="mail", tenant_id="acme")])
        await acme.jobs.cancel(["ours"], "no longer needed")
        told = [(c.job_id, c.status) for c in await worker.changes.waiting("bank.ended")]
        assert told == [("theirs", "queued"), ("ours", "queued"), ("ours", "cancelled")]
        assert await acme.changes.followers() == []
        assert {c.job_id for c in await acme.changes.waiting("bank.ended")} == {"ours"}
        with pytest.raises(AccessDenied):
            await acme.changes.follow("mine.all", [Status.QUEUED])
        with pytest.raises(AccessDenied):
            await acme.changes.unfollow("bank.ended")
        assert await acme.upkeep.erase(["ours"]) == 1
        told = [(c.job_id, c.status) for c in await worker.changes.waiting("bank.ended")]
        assert told == [("theirs", "queued")]
        assert await worker.changes.unfollow("bank.ended")
    finally:
        await acme.close()
        await worker.close()
