"""What a worker asks all day stays quick, however much waits and however much has ended."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.json import decode

from penstock.store.postgres.connect import Connection, address_of, connect
from penstock.store.postgres.queries import queries
from penstock.store.postgres.transaction import PostgresTransaction
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
SCANS = """
SELECT coalesce(sum(seq_scan), 0), coalesce(sum(idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
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


def _claim(limit: int = 100) -> dict[str, Any]:
    return {
        "owner": "host:1:x",
        "types": ["work"],
        "queues": None,
        "max_priority": None,
        "limit": limit,
        "start": limit,
        "lease_ms": 60_000,
        "type_lease_ms": "{}",
        "last_tenant": "",
        "walked_to": None,
        "tidy": True,
        "now": NOW,
        "monotonic": NOW,
    }


@pytest.mark.parametrize(
    ("name", "bindings", "index"),
    [
        ("first_lane", (), "jobs_live_queued"),
        ("next_lane", LANE, "jobs_live_queued"),
        ("lane", (*LANE, 100, 0), "jobs_live_queued"),
        ("urgent_lane", (*LANE, 5, 100, 0), "jobs_live_queued"),
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


def test_leasing_the_jobs_of_a_lane_finds_each_by_an_index(tx: PostgresTransaction) -> None:
    seqs = [seq for (seq,) in tx.connection.execute("SELECT seq FROM jobs_live LIMIT 100")]
    row = {"seqs": seqs, "owner": "host:1:x", "until": NOW, "now": NOW, "start": True}
    nodes = _plan(tx.connection, "claim", row)
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}


def test_a_claim_reads_hardly_more_rows_than_it_leases(tx: PostgresTransaction) -> None:
    answer = tx.value("claim_quietly", _claim())
    assert answer.count('["job-') == 100
    [(scans, fetched)] = tx.connection.execute(SCANS).fetchall()
    assert scans == 0
    assert fetched < 1_000


def test_completing_a_batch_reads_each_job_once(tx: PostgresTransaction) -> None:
    tx.value("claim_quietly", _claim())
    leased = "SELECT id FROM jobs_live WHERE status = 'in_progress'"
    ids = [job_id for (job_id,) in tx.connection.execute(leased)]
    [(before, read)] = tx.connection.execute(SCANS).fetchall()
    ended = ",".join(f'["{job_id}",1,"null",{NOW},0,0,0,0]' for job_id in ids)
    row = {"ended": f"[{ended}]", "owner": "host:1:x", "sums": "[]", "now": NOW}
    assert tx.value("complete_all", row).count("job-") == len(ids) == 100
    [(after, fetched)] = tx.connection.execute(SCANS).fetchall()
    assert after == before
    assert fetched - read < 1_000


def test_a_page_of_running_jobs_never_opens_the_history(tx: PostgresTransaction) -> None:
    names = ("type", "queue", "tenant_id", "parent_job_id", "schedule_id", "tag", "before")
    row = dict.fromkeys(names) | {"status": "in_progress", "limit": 50}
    nodes = _plan(tx.connection, "find_jobs", row)
    assert "jobs_ended" not in {node.get("Relation Name") for node in nodes}
