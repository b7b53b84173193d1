"""The schema says the same as the model and the design, and is built for what is done to it."""

import re

import psycopg
import pytest

from penstock.model.controls import LimitKind, LimitScope, PauseScope
from penstock.model.job import Job, KeyScope
from penstock.model.states import Status
from penstock.store.contract import Resolution
from penstock.store.postgres.connect import Connection

TABLES_OF_THE_DESIGN = {
    *("jobs", "job_executions", "job_keys", "job_dependencies", "job_schedules", "job_logs"),
    *("dead_letter_jobs", "pauses", "limits", "workers", "audit_log", "metrics"),
}
HOT = ["jobs_live", "jobs_ended", "job_executions", "job_keys", "slots", "workers", "metric_deltas"]
COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema"
)
JOB = """
INSERT INTO jobs_live (id, type, queue, status, rank, priority, max_retries, timeout_ms,
    scheduled_at, created_at, updated_at, payload)
VALUES (%(id)s, 'mail', 'default', %(status)s, 0, 5, 3, 1, now(), now(), now(), %(payload)s)
"""
DOCUMENTS = [
    "{}",
    ' { "b" : 1 , "a":2,"b": 3 } ',
    '{"n":12345678901234567890123456789012345678901234567890,"x":1e400,"z":-0.0,"y":1.10}',
    '"grüße \\u0000 \\ud83d\\ude00 😀 \\ud83d"',
]


def enqueue(
    tx: Connection,
    job_id: str = "0",
    status: str = "queued",
    payload: str = "{}",
) -> None:
    tx.execute(JOB, {"id": job_id, "status": status, "payload": payload})


def _checked(tx: Connection, table: str, column: str) -> set[str]:
    """The values a CHECK lets a column have."""
    found = tx.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass "
        "AND contype = 'c' AND conkey = ARRAY[(SELECT attnum FROM pg_attribute "
        "WHERE attrelid = conrelid AND attname = %s)]",
        (table, column),
    ).fetchone()
    assert found is not None
    return set(re.findall(r"'(\w+)'", found[0]))


def _columns(tx: Connection, table: str) -> set[str]:
    return {str(name) for (name,) in tx.execute(f"{COLUMNS} = current_schema()".encode(), (table,))}


def _updates(tx: Connection) -> tuple[int, int]:
    """How many rows of jobs_live were updated, and how many of them without touching an index."""
    found = tx.execute(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables "
        "WHERE relid = 'jobs_live'::regclass"
    ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


def _plan(tx: Connection, query: str) -> str:
    return "\n".join(str(line) for (line,) in tx.execute(f"EXPLAIN {query}".encode()))


@pytest.mark.parametrize(
    ("table", "column", "values"),
    [
        ("jobs", "status", Status),
        ("dead_letter_jobs", "resolution", Resolution),
        ("job_keys", "scope", KeyScope),
        ("pauses", "scope", PauseScope),
        ("limits", "scope", LimitScope),
        ("limits", "kind", LimitKind),
    ],
)
def test_the_values_a_column_may_have_are_those_of_the_model(
    tx: Connection, table: str, column: str, values: type
) -> None:
    assert _checked(tx, table, column) == set(values)


def test_every_table_of_the_design_exists(tx: Connection) -> None:
    found = tx.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    assert {str(name) for (name,) in found} >= TABLES_OF_THE_DESIGN


def test_jobs_has_a_column_for_every_field_a_reader_gets(tx: Connection) -> None:
    assert _columns(tx, "jobs") >= set(Job.__struct_fields__)


def test_everything_a_person_may_find_is_explained(tx: Connection) -> None:
    silent = tx.execute(
        "SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') "
        "AND attnum > 0 AND NOT attisdropped AND col_description(attrelid, attnum) IS NULL "
        "UNION ALL SELECT relname, '' FROM pg_class "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') "
        "AND obj_description(oid, 'pg_class') IS NULL"
    )
    assert silent.fetchall() == []


def test_a_row_that_has_ended_cannot_stay_among_the_living(tx: Connection) -> None:
    enqueue(tx)
    with pytest.raises(psycopg.errors.CheckViolation):
        tx.execute("UPDATE jobs SET status = 'completed'")


@pytest.mark.parametrize("status", ["completed", "cancelled", "dead_letter"])
def test_a_job_that_ends_moves_to_the_history_and_back_with_all_it_has(
    tx: Connection, status: str
) -> None:
    enqueue(tx, payload=DOCUMENTS[1])
    before = tx.execute("SELECT seq, id, fence, payload, created_at FROM jobs").fetchall()
    tx.execute("UPDATE jobs SET live = false, status = %s", (status,))
    assert tx.execute("SELECT count(*) FROM jobs_live").fetchone() == (0,)
    moved = tx.execute("SELECT seq, id, fence, payload, created_at FROM jobs_ended").fetchall()
    assert moved == before
    tx.execute("UPDATE jobs SET live = true, status = 'pending'")
    assert tx.execute("SELECT count(*) FROM jobs_ended").fetchone() == (0,)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_payload_comes_back_byte_for_byte(tx: Connection, document: str) -> None:
    enqueue(tx, payload=document)
    assert tx.execute("SELECT payload FROM jobs").fetchone() == (document,)
    tx.execute("UPDATE jobs SET live = false, status = 'completed', result = payload")
    assert tx.execute("SELECT payload, result FROM jobs").fetchone() == (document, document)


def test_names_sort_by_their_bytes_whatever_the_locale(tx: Connection) -> None:
    names = ["Z", "a", "é", "_", "10", "9", "😀", "a b"]
    for name in names:
        enqueue(tx, name)
    found = [str(row[0]) for row in tx.execute("SELECT id FROM jobs ORDER BY id")]
    assert found == sorted(names, key=str.encode)
    loose = tx.execute(
        "SELECT relname, attname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
        "JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
        "WHERE relnamespace = current_schema()::regnamespace AND atttypid = 'text'::regtype "
        "AND attcollation <> '\"C\"'::regcollation"
    )
    assert loose.fetchall() == []


@pytest.mark.parametrize(
    "change",
    [
        "lease_until = now()",
        "started_at = now(), updated_at = now()",
        "progress_percent = 5, progress_message = 'half', checkpoint = '7'",
    ],
)
def test_renewals_start_marks_and_progress_stay_on_their_page_and_touch_no_index(
    tx: Connection, change: str
) -> None:
    for number in range(500):
        enqueue(tx, str(number), "in_progress")
    all_before, on_page_before = _updates(tx)
    tx.execute(f"UPDATE jobs_live SET {change} WHERE id LIKE '%7'".encode())
    everything, on_page = _updates(tx)
    assert everything - all_before == on_page - on_page_before == 50


@pytest.mark.parametrize("table", HOT)
def test_a_busy_table_is_cleaned_up_early_and_without_pauses(tx: Connection, table: str) -> None:
    found = tx.execute("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", (table,))
    row = found.fetchone()
    assert row is not None
    options = dict(option.split("=") for option in row[0])
    assert float(options["autovacuum_vacuum_scale_factor"]) <= 0.02
    assert options["autovacuum_vacuum_cost_delay"] == "0"


def test_a_page_of_the_newest_jobs_reads_two_indexes_and_sorts_nothing(tx: Connection) -> None:
    tx.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    plan = _plan(tx, "SELECT id FROM jobs WHERE id < '9' ORDER BY id DESC LIMIT 50")
    assert "jobs_live_pkey" in plan
    assert "jobs_ended_pkey" in plan
    assert "Sort" not in plan.replace("Sort Key", "")


def test_a_search_in_the_payloads_of_ended_jobs_has_an_index(tx: Connection) -> None:
    for number, document in enumerate([*DOCUMENTS, '{"to":"ann"}']):
        enqueue(tx, str(number), payload=document)
    tx.execute("UPDATE jobs SET live = false, status = 'completed'")
    search = """SELECT id FROM jobs WHERE searchable(payload) @> '{"to":"ann"}'"""
    assert tx.execute(search.encode()).fetchall() == [("4",)]
    tx.execute("SET LOCAL enable_seqscan = off")
    assert "jobs_ended_payload" in _plan(tx, search)


def test_the_view_speaks_the_global_context_network_s_names(tx: Connection) -> None:
    found = tx.execute(
        f"{COLUMNS} = current_schema() ORDER BY ordinal_position".encode(), ("job_queue",)
    )
    assert [str(name) for (name,) in found] == [
        *("id", "type", "status", "priority", "scheduled_at", "lease_owner", "lease_until"),
        *("payload", "idempotency_key", "attempts", "max_retries", "error"),
        *("created_at", "updated_at", "started_at", "completed_at", "result"),
    ]
