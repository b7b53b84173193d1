"""The plans of the hot statements are pinned: each reads its index in order and nothing else."""

import re
from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from penstock.model.outcome import Completed
from penstock.store.contract import Claim
from penstock.store.open import open_store
from penstock.store.relational.settle import settle
from penstock.store.sqlite.connect import SqliteTransaction, connect, queries
from penstock.store.sqlite.migrate import migrate
from penstock.store.sqlite.store import SqliteClaims
from penstock.testing.clock import FakeClock
from proof.conformance.build import a_job, claim_all

BY_ID = "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)"
BY_SEQ = "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"
IN_QUEUE = "SEARCH jobs USING COVERING INDEX jobs_queued (queue"
LANE = f"{IN_QUEUE}=? AND tenant_id=? AND type=? AND limit_key=?)"
PLACES = "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
CHILDREN = "SEARCH jobs USING INDEX jobs_children (parent_job_id=? AND rowid>? AND rowid<?)"
SCHEDULED = "SEARCH jobs USING INDEX jobs_scheduled (schedule_id=? AND seq>? AND seq<?)"
IDS = "SEARCH jobs USING COVERING INDEX sqlite_autoindex_jobs_1"
LETTERS_OF_GROUP = "dead_letter_jobs USING COVERING INDEX dead_letter_jobs_group"
LETTER_BY_SEQ = "SEARCH dead_letter_jobs USING INTEGER PRIMARY KEY (rowid=?)"
LETTER = (
    "SEARCH dead_letter_jobs USING COVERING INDEX sqlite_autoindex_dead_letter_jobs_1 (job_id=?)"
)

# A SCAN here is one of a partial index, so of jobs that wait or run, or of open letters, alone.
NEXT_LANE = [
    f"{IN_QUEUE}=? AND tenant_id=? AND type=? AND limit_key>?)",
    f"{IN_QUEUE}=? AND tenant_id=? AND type>?)",
    f"{IN_QUEUE}=? AND tenant_id>?)",
    f"{IN_QUEUE}>?)",
]
PLANS = {
    "lane": [LANE],
    "urgent_lane": [LANE],
    "lane_after": [f"{LANE[:-1]} AND (rank,priority)>(?,?))"],
    "urgent_lane_after": [f"{LANE[:-1]} AND (rank,priority)>(?,?))"],
    "first_lane": ["SCAN jobs USING COVERING INDEX jobs_queued"],
    "next_lane": NEXT_LANE,
    "next_lanes": NEXT_LANE,
    "next_due": ["SEARCH jobs USING INDEX jobs_due"],
    "stage": [BY_SEQ, "SEARCH jobs USING INDEX jobs_due (scheduled_at<?)"],
    "claim": [BY_SEQ],
    "lapsed": ["SCAN jobs USING INDEX jobs_leased"],
    "leased_by": ["SEARCH jobs USING INDEX jobs_leased (lease_owner=?)"],
    "cancel_requests": ["SEARCH jobs USING INDEX jobs_cancel_requested (lease_owner=?)"],
    "expiring": ["SEARCH jobs USING INDEX jobs_expiring (expires_at>? AND expires_at<?)"],
    "completed_to_remove": [
        "SEARCH jobs USING INDEX jobs_removed_complete (<expr><?)",
        "SCAN jobs USING INDEX jobs_counted_complete",
        "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY",
    ],
    "dead_to_remove": [
        "SEARCH jobs USING INDEX jobs_removed_dead (<expr><?)",
        "SCAN jobs USING INDEX jobs_counted_dead",
        "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY",
    ],
    "still_dead": [BY_ID],
    "ended_among": [BY_ID],
    "ended_before_among": [BY_ID],
    "ended_before": ["SEARCH jobs USING INDEX jobs_ended (status=? AND completed_at<?)"],
    "queued_depths": ["SCAN jobs USING COVERING INDEX jobs_queued"],
    # Among many jobs due at once, those without an order key must not be walked through.
    "due_ordered": ["SEARCH jobs USING INDEX jobs_due_ordered (scheduled_at<?)"],
    "leased_lanes": ["SCAN jobs USING INDEX jobs_leased", "USE TEMP B-TREE FOR GROUP BY"],
    "queue_depth": [f"{IN_QUEUE}=?)"],
    "ahead": [f"{LANE[:-1]} AND rank<?)"],
    "holders": ["SCAN jobs USING INDEX jobs_leased", "USE TEMP B-TREE FOR ORDER BY"],
    "get_jobs": [BY_ID],
    "rank_of": [BY_ID],
    "status_of": [BY_ID],
    "other_tenants": [f"{IN_QUEUE}=?)", f"{IN_QUEUE}=? AND tenant_id>?)"],
    "search_bounds": [*[f"{IDS} (id<?)"] * 2, f"{IDS} (id>?)"],
    **{key: [PLACES] for key in ("search_newest", "end_of_newest")},
    **{key: [CHILDREN] for key in ("search_children", "end_of_children")},
    **{key: [SCHEDULED] for key in ("search_scheduled", "end_of_scheduled")},
    "search_listed": [BY_SEQ],
    "find_jobs": [PLACES],
    "open_letters": ["SCAN dead_letter_jobs USING INDEX dead_letter_jobs_open", LETTER],
    "open_letters_of_type": [
        "SEARCH dead_letter_jobs USING INDEX dead_letter_jobs_open_type (type=?)",
        LETTER,
    ],
    "dead_groups": [
        f"SCAN {LETTERS_OF_GROUP}",
        LETTER,
        "USE TEMP B-TREE FOR ORDER BY",
        LETTER_BY_SEQ,
    ],
    "one_dead_group": [
        f"SEARCH {LETTERS_OF_GROUP} (fingerprint=? AND type=?)",
        LETTER_BY_SEQ,
    ],
    **{
        f"entries_of_{name}": [f"SEARCH audit_log USING INDEX audit_log_{name} ({column}=?)"]
        for name, column in (("actor", "actor"), ("subject", "subject"), ("tenant", "tenant_id"))
    },
    "dead_group_names": [f"SCAN {LETTERS_OF_GROUP}"],
    "dead_count": ["SCAN dead_letter_jobs USING COVERING INDEX dead_letter_jobs_open"],
    "dead_count_of_type": [
        "SEARCH dead_letter_jobs USING COVERING INDEX dead_letter_jobs_open_type (type=?)"
    ],
    "of_status": [
        "SCAN jobs USING COVERING INDEX jobs_queued",
        "SCAN jobs USING COVERING INDEX jobs_leased",
        "SCAN jobs USING INDEX jobs_due",
        "SCAN jobs USING INDEX jobs_blocked",
        f"{IDS} (id=? AND rowid>? AND rowid<?)",
        "SEARCH jobs USING COVERING INDEX jobs_ended (status=?)",
    ],
}
BY_ID_ALONE = (
    *("start", "complete", "fail", "snooze", "stop", "bury", "hand_back"),
    *("renew", "report_progress", "cancel_waiting", "request_cancel", "requeue", "expire"),
    *("lower_waiting", "raise_waiting", "cancel_dependent", "bury_dependent", "set_payload"),
)


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = connect(None)
    migrate(connection, ":memory:", FakeClock())
    yield connection
    connection.close()


def _plan(connection: apsw.Connection, name: str) -> list[str]:
    """The steps SQLite takes on the jobs table, and every sort."""
    sql = queries()[name]
    bare = re.sub(r"--.*|'[^']*'", "", sql)
    named = dict.fromkeys(re.findall(r":(\w+)", bare), 1)
    positional = (1,) * (len(set(re.findall(r"\?\d", bare))) or bare.count("?"))
    steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", named or positional)
    told = [str(row[3]) for row in steps]
    return [
        step for step in told if re.search(r"\b((dead_letter_)?jobs|audit_log)\b|TEMP B-TREE", step)
    ]


@pytest.mark.parametrize("name", PLANS)
def test_a_hot_statement_reads_its_index_in_order(name: str, connection: apsw.Connection) -> None:
    assert _plan(connection, name) == PLANS[name]


@pytest.mark.parametrize("name", BY_ID_ALONE)
def test_a_write_to_one_job_finds_it_by_its_id(name: str, connection: apsw.Connection) -> None:
    assert _plan(connection, name) == [BY_ID]


def test_no_statement_reads_every_job(connection: apsw.Connection) -> None:
    whole = {name for name in queries() if "SCAN jobs" in _plan(connection, name)}
    # A move counts everything.
    assert whole == {"tally_statuses"}


async def test_a_claim_among_many_tenants_takes_few_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = open_store("sqlite:///:memory:", FakeClock())
    await store.open()
    await store.jobs.enqueue([a_job(tenant_id=f"t{n:04}") for n in range(1_000)])
    asked: list[str] = []
    row = SqliteTransaction.row

    def noted(tx: SqliteTransaction, name: str, bindings: Any = ()) -> tuple[Any, ...] | None:
        asked.append(name)
        return row(tx, name, bindings)

    monkeypatch.setattr(SqliteTransaction, "row", noted)
    leases = [await claim_all(store, limit=20) for _ in range(3)]
    await store.close()
    assert [len(granted) for granted in leases] == [20, 20, 20]
    assert len({lease.tenant_id for granted in leases for lease in granted}) == 60
    assert len(asked) / 3 < 60


def test_a_deep_lane_is_read_on_from_where_the_last_look_ended() -> None:
    connection = connect(None)
    migrate(connection, ":memory:", FakeClock())
    connection.executemany(
        "INSERT INTO jobs (id, type, queue, status, limit_key, rank, priority, timeout_ms, "
        "scheduled_at, created_at, updated_at, payload) "
        "VALUES (?1, 't', 'q', 'queued', '', ?2, 5, 1, 0, 0, 0, '{}')",
        [(str(n), n // 10) for n in range(5_000)],
    )
    steps: list[int] = []
    tx = SqliteTransaction(connection, 0, 0)
    claim = Claim(owner="host:1", types=["t"], limit=9, start=9, lease_ms=1)
    connection.trace_v2(
        apsw.SQLITE_TRACE_PROFILE,
        lambda event: steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
    )
    found = list(SqliteClaims().candidates(tx, ("q", "", "t", ""), claim, 100))
    connection.close()
    assert [seq for _, seq, _ in found] == list(range(1, 5_001))
    assert max(steps) < 2 * steps[0]


def test_a_job_is_claimed_and_completed_in_few_steps_of_sqlite() -> None:
    # What an index or a CHECK asks is asked of every row that is written: a list of more than two
    # there, or one index more, has made these grow unnoticed before.
    connection = connect(None)
    migrate(connection, ":memory:", FakeClock())
    connection.executemany(
        "INSERT INTO jobs (id, type, queue, status, limit_key, rank, priority, timeout_ms, "
        "scheduled_at, created_at, updated_at, payload) "
        "VALUES (?, 't', 'q', 'queued', '', 1, 5, 1, 0, 0, 0, '{}')",
        [(f"{n:03}",) for n in range(100)],
    )
    steps: dict[str, float] = {}
    names = {sql: name for name, sql in queries().items()}

    def note(event: dict[str, Any]) -> None:
        name = names.get(event["sql"], "")
        steps[name] = event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"] / 100

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    tx = SqliteTransaction(connection, 0, 0)
    claim = Claim(owner="host:1", types=["t"], limit=100, start=100, lease_ms=1)
    leases = SqliteClaims().claim(tx, claim).leases
    completed = [
        Completed(id=lease.id, fence=lease.fence, type="t", queue="q", started_at=0)
        for lease in leases
    ]
    assert settle(tx, "host:1", completed) == []
    connection.close()
    assert len(leases) == 100
    assert steps["lane"] < 16
    assert steps["claim"] < 175
    assert steps["granted"] < 55
    assert steps["complete"] < 190
    assert steps["insert_completed_executions"] < 70
