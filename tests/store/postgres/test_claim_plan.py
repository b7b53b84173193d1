"""What a worker asks all day stays quick, however much waits and however much has ended."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.json import decode
from msgspec.structs import asdict

from penstock.model.states import Status
from penstock.store.contract import AuditFilter
from penstock.store.postgres.claim import PostgresClaims
from penstock.store.postgres.connect import Connection, address_of, connect
from penstock.store.postgres.queries import queries
from penstock.store.postgres.settle import settle_all
from penstock.store.postgres.transaction import PostgresTransaction
from proof.conformance.build import OWNER, a_claim, completed
from tests.support.databases import Databases

NOW = 1_800_000_000_000
LANE = ("default", "", "work", "")

FILL = """
INSERT INTO jobs (live, id, type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms,
    scheduled_at, created_at, updated_at, queued_at, completed_at, payload)
SELECT n > 100000, 'job-' || n, 'work', 'default', CASE WHEN n % 100 = 0 THEN 'small' ELSE '' END,
    CASE WHEN n > 100000 THEN 'queued' ELSE 'completed' END, n, 5, 3, 1000,
    at(0), at(0), at(0), at(0), CASE WHEN n <= 100000 THEN at(0) END, '{"n": 1}'
FROM generate_series(1, 110000) AS n
"""
FILL_LETTERS = """
INSERT INTO dead_letter_jobs (created_at, attempts, rescues, job_id, type, queue, tenant_id, reason,
    fingerprint, resolution, snapshot, executions)
SELECT at(0), 1, 0, 'job-' || n, CASE WHEN n % 2 = 0 THEN 'work' ELSE 'other' END, 'default', '',
    'error', 'f', CASE WHEN n % 500 < 2 THEN 'investigating' ELSE 'resolved' END, '{}', '[]'
FROM generate_series(1, 10000) AS n
"""
FILL_AUDIT_LOG = """
INSERT INTO audit_log (seq, at, actor, action, subject, tenant_id, details, previous, hash)
SELECT n, at(0), 'n-' || n % 2000, 'job.cancel', 'n-' || n % 2000, 'n-' || n % 2000, '{}', '', ''
FROM generate_series(1, 20000) AS n
"""
READS = """
SELECT sum(seq_scan)::int, sum(coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables
WHERE relname IN ('jobs_live', 'jobs_ended', 'job_executions', 'job_keys', 'job_dependencies')
"""


@pytest.fixture(scope="module")
def connection(databases: Databases) -> Iterator[Connection]:
    """A connection to a store with 10,000 queued and 100,000 ended jobs."""
    url = databases.take_store()
    with connect(address_of(url)) as connection:
        connection.execute("SET search_path TO penstock")
        connection.execute(FILL)
        connection.execute("VACUUM ANALYZE jobs")
        yield connection
    databases.give_back(url)


@pytest.fixture
def tx(connection: Connection) -> Iterator[PostgresTransaction]:
    """A transaction that is undone afterwards."""
    connection.execute("BEGIN")
    yield PostgresTransaction(connection, NOW, NOW)
    connection.execute("ROLLBACK")


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def _plan(connection: Connection, name: str, bindings: Any) -> list[dict[str, Any]]:
    cursor = connection.execute(b"EXPLAIN (FORMAT JSON) " + queries()[name], bindings)
    [(answer,)] = cursor.fetchall()
    return list(_nodes(decode(answer)[0]["Plan"]))


def _reads(tx: PostgresTransaction) -> tuple[int, int]:
    """How often whole tables were read so far, and how many rows by an index."""
    [(scans, fetched)] = tx.connection.execute(READS).fetchall()
    return scans, fetched


@pytest.mark.parametrize(
    ("name", "bindings", "index"),
    [
        ("first_lane", (), "jobs_live_queued"),
        ("next_lane", LANE, "jobs_live_queued"),
        ("lane", (*LANE, None, 0, 0, 100), "jobs_live_queued"),
        ("lane", (*LANE, 5, 0, 0, 100), "jobs_live_queued"),
        ("next_due", (), "jobs_live_due"),
        ("expiring", (NOW, 200), "jobs_live_expiring"),
        ("due_ordered", (NOW, 200), "jobs_live_due"),
        ("stage", {"now": NOW, "limit": 200, "priority_weight": 1}, "jobs_live_due"),
        ("cancel_requests", ("host:1:x",), "jobs_live_cancel_requested"),
        (
            "ended_before",
            {"status": "cancelled", "before": NOW, "spared": [], "limit": 100},
            "jobs_ended_prunable",
        ),
    ],
)
def test_a_question_asked_at_every_turn_is_answered_by_its_index(
    tx: PostgresTransaction, name: str, bindings: Any, index: str
) -> None:
    nodes = _plan(tx.connection, name, bindings)
    assert index in {node.get("Index Name") for node in nodes}
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}


OPEN_LETTERS = {"type": "work", "resolution": None, "tenant_id": None, "before": None, "limit": 1}


@pytest.mark.parametrize(
    ("name", "bindings"),
    [
        ("open_letters", OPEN_LETTERS),
        ("open_letters_of_type", OPEN_LETTERS),
        ("dead_count", ()),
        ("dead_count_of_type", ("work",)),
    ],
)
def test_open_dead_letters_are_found_however_many_are_closed(
    tx: PostgresTransaction, name: str, bindings: Any
) -> None:
    tx.connection.execute(FILL_LETTERS)
    tx.connection.execute("ANALYZE dead_letter_jobs")
    nodes = _plan(tx.connection, name, bindings)
    indexes = {str(node.get("Index Name")) for node in nodes}
    assert indexes & {"dead_letter_jobs_open", "dead_letter_jobs_open_type"}
    assert not {"Seq Scan", "Sort"} & {node["Node Type"] for node in nodes}


@pytest.mark.parametrize("name", ["actor", "subject", "tenant"])
def test_entries_are_found_however_long_the_audit_log_is(
    tx: PostgresTransaction, name: str
) -> None:
    tx.connection.execute(FILL_AUDIT_LOG)
    tx.connection.execute("ANALYZE audit_log")
    bindings = asdict(AuditFilter()) | {"tenant_id" if name == "tenant" else name: "n-7"}
    nodes = _plan(tx.connection, f"entries_of_{name}", bindings)
    assert f"audit_log_{name}" in {node.get("Index Name") for node in nodes}
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}


def test_a_group_of_dead_letters_is_counted_from_its_index(tx: PostgresTransaction) -> None:
    tx.connection.execute(FILL_LETTERS)
    tx.connection.execute("ANALYZE dead_letter_jobs")
    bindings = {"type": "work", "fingerprint": "g", "tenant_id": None}
    nodes = _plan(tx.connection, "one_dead_group", bindings)
    assert "dead_letter_jobs_group" in {node.get("Index Name") for node in nodes}
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}


LIMIT = """
INSERT INTO limits (scope, name, kind, capacity, updated_at)
VALUES ('type', 'work', 'concurrency', 9999, now())
"""


def test_a_claim_past_gates_reads_hardly_more_rows_than_it_leases(tx: PostgresTransaction) -> None:
    tx.connection.execute(LIMIT)
    scans, fetched = _reads(tx)
    assert len(PostgresClaims(trusted=False).claim(tx, a_claim(limit=100)).leases) == 100
    assert _reads(tx) <= (scans, fetched + 1_000)


def test_a_claim_reads_hardly_more_rows_than_it_leases(tx: PostgresTransaction) -> None:
    scans, fetched = _reads(tx)
    assert len(PostgresClaims(trusted=False).claim(tx, a_claim(limit=100)).leases) == 100
    assert _reads(tx) <= (scans, fetched + 1_000)


def test_completing_a_batch_reads_hardly_more_rows_than_it_ends(tx: PostgresTransaction) -> None:
    leases = PostgresClaims(trusted=False).claim(tx, a_claim(limit=100)).leases
    scans, fetched = _reads(tx)
    assert settle_all(tx, OWNER, [completed(lease) for lease in leases]) == []
    assert _reads(tx) <= (scans, fetched + 1_000)


def _asked(**where: Any) -> dict[str, Any]:
    """What a search binds, with the places of a look."""
    names = (
        "statuses",
        "type",
        "queue",
        "category",
        "tenant_id",
        "parent_job_id",
        "schedule_id",
        "text",
    )
    more = ("workspace_id", "created_by", "lease_owner", "tag", "since", "until", "needle", "other")
    texts = ("second_text", "third_text", "fourth_text")
    given = {"verify": False, "below": "job-9", "above": "job-5", "looks": 20_000, "limit": 51}
    flags = dict.fromkeys((status.value for status in Status), True)
    return dict.fromkeys((*names, *more, *texts)) | given | flags | where


@pytest.mark.parametrize(
    ("name", "where", "indexes"),
    [
        ("search_newest", {}, {"jobs_live_pkey", "jobs_ended_pkey"}),
        ("find_jobs", {"type": "a"}, {"jobs_live_pkey", "jobs_ended_pkey"}),
        ("search_newest", {"text": "%x%"}, {"jobs_live_pkey", "jobs_ended_pkey"}),
        ("end_of_newest", {}, {"jobs_live_pkey", "jobs_ended_pkey"}),
        (
            "search_children",
            {"parent_job_id": "job-1"},
            {"jobs_live_children", "jobs_ended_children"},
        ),
        ("end_of_children", {"parent_job_id": "p"}, {"jobs_live_children", "jobs_ended_children"}),
        ("search_scheduled", {"schedule_id": "s"}, {"jobs_live_scheduled", "jobs_ended_scheduled"}),
        ("end_of_scheduled", {"schedule_id": "s"}, {"jobs_live_scheduled", "jobs_ended_scheduled"}),
    ],
)
def test_a_look_reads_its_indexes_in_order_and_sorts_nothing(
    tx: PostgresTransaction, name: str, where: dict[str, Any], indexes: set[str]
) -> None:
    tx.connection.execute("SET LOCAL enable_sort = off")
    nodes = _plan(tx.connection, name, _asked(**where))
    assert {node["Index Name"] for node in nodes if "Index Name" in node} == indexes
    assert not {"Seq Scan", "Sort"} & {node["Node Type"] for node in nodes}


def test_a_payload_is_looked_for_by_its_index(tx: PostgresTransaction) -> None:
    nodes = _plan(tx.connection, "of_payload", _asked(document='{"n": 7}'))
    assert "jobs_ended_payload" in {node.get("Index Name") for node in nodes}
