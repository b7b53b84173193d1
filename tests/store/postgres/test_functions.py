"""The functions in the schema answer what the rest of penstock answers."""

import json
import re
from collections.abc import AsyncIterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge, Outcome
from penstock.model.job import PRIORITY_STEP_MS, NewJob
from penstock.model.outcome import Completed
from penstock.model.states import Status
from penstock.store.contract import Claim, Store
from penstock.store.open import open_store
from penstock.store.postgres.connect import Address, Connection, address_of, connect
from penstock.store.postgres.migrate import functions
from penstock.testing.clock import FakeClock
from proof import LONG

OWNER = "host:1"
YEAR_9999_MS = 253_402_300_799_999
EXACT_UNTIL_MS = 2**33 * 1_000
"""From the year 2242 a double holds no single microseconds any more, only milliseconds."""
REFUSED_BY_JSONB = [
    '"\\u0000"',
    '{"a\\u0000": 1}',
    '"\\ud83d"',
    '"\\ude00\\ud83d"',
    '"\\\\ud83d\\ude00"',
    '"\\ud83d\\\\\\ude00"',
    '"\\ud83d \\ude00"',
    "1e999999",
    '{"a":[-1.5E+200000]}',
    '{"a": 1e-99999}',
    "[" + "9" * 200_000 + "]",
    "0." + "1" * 50_000,
    "[" * 5_000 + "]" * 5_000,
    '{"a":' * 4_500 + "1" + "}" * 4_500,
]
HELD_BY_JSONB = [
    "null",
    "1e400",
    '"\\ud83d\\ude00"',
    '"\\\\u0000"',
    '"9f86e12345678"',
    '{"to":"ann","n":12345678901234567890123456789012345678901234567890}',
    '"' + "[" * 3_000 + '"',
]


def test_times_survive_the_way_there_and_back_to_the_millisecond(tx: Connection) -> None:
    given = [0, 1, 999, 1_000, -1, -62_135_596_800_000, 1_773_000_000_007, YEAR_9999_MS]
    given += [1_773_000_000_000 + n for n in range(2_000)]
    given += [EXACT_UNTIL_MS // 997 * n for n in range(997)]
    given += [YEAR_9999_MS // 499 * n for n in range(499)]
    back = tx.execute(
        "SELECT array_agg(ms(at(n)) ORDER BY i) FROM unnest(%s::bigint[]) "
        "WITH ORDINALITY AS given (n, i)",
        (given,),
    ).fetchone()
    assert back == (given,)


def test_a_time_is_stored_with_whole_milliseconds(tx: Connection) -> None:
    given = [EXACT_UNTIL_MS // 9_973 * n for n in range(9_973)]
    odd = tx.execute(
        "SELECT n FROM unnest(%s::bigint[]) AS n WHERE at(n) <> date_trunc('milliseconds', at(n))",
        (given,),
    )
    assert odd.fetchall() == []


def test_a_time_means_the_same_in_every_time_zone(tx: Connection) -> None:
    for zone in ("UTC", "America/New_York", "Asia/Kathmandu"):
        tx.execute("SELECT set_config('timezone', %s, true)", (zone,))
        shown = tx.execute(
            "SELECT ms('2026-03-29T01:30:00.007Z'), at(1774747800007) AT TIME ZONE 'UTC'"
        )
        row = shown.fetchone()
        assert row is not None
        assert (row[0], row[1].isoformat()) == (1_774_747_800_007, "2026-03-29T01:30:00.007000")


@pytest.mark.parametrize("function", ["ms(scheduled_at)", "at(rank)"])
def test_a_time_function_becomes_part_of_the_query(tx: Connection, function: str) -> None:
    plan = tx.execute(f"EXPLAIN VERBOSE SELECT {function} FROM jobs_live".encode()).fetchall()
    assert function.partition("(")[0] + "(" not in str(plan[1:]).replace("timestamp(", "")


@pytest.mark.parametrize("document", REFUSED_BY_JSONB, ids=range(len(REFUSED_BY_JSONB)))
def test_a_document_that_jsonb_refuses_is_kept_and_not_searchable(
    tx: Connection, document: str
) -> None:
    assert tx.execute("SELECT searchable(%s)", (document,)).fetchone() == (None,)


@pytest.mark.parametrize("document", HELD_BY_JSONB, ids=range(len(HELD_BY_JSONB)))
def test_other_documents_are_searchable(tx: Connection, document: str) -> None:
    row = tx.execute("SELECT searchable(%(d)s) = %(d)s::jsonb", {"d": document}).fetchone()
    assert row == (True,)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('\\u0dD8eE"a1 ')),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.lists(st.sampled_from(["\\\\", "\\ud83d", "\\ude00", "\\u0000", "\\n", "x", "1e99999 "])),
)
@settings(max_examples=200 if LONG else 50, deadline=None)
def test_no_document_makes_it_fail(
    shared: Address, shared_admin: Connection, document: object, escapes: list[str]
) -> None:
    shared_admin.execute(shared.begin())
    try:
        for text in (json.dumps(document), f'{{"a":"{"".join(escapes)}"}}'):
            [value] = shared_admin.execute("SELECT searchable(%s)", (text,)).fetchone() or ()
            assert value is None or json.loads(value) == json.loads(text)
    finally:
        shared_admin.execute("ROLLBACK")


def test_the_functions_know_how_much_a_step_of_priority_is() -> None:
    assert {int(step) for step in re.findall(r"\b\d{7,}\b", functions())} == {PRIORITY_STEP_MS}


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncIterator[Store]:
    store = open_store(postgres_store_url, FakeClock())
    await store.open()
    yield store
    await store.close()


def _ask(store: Store, query: str) -> list[dict[str, object]]:
    """Ask by the store's clock, which stands still."""
    address = address_of(store.url)
    with connect(address) as connection:
        connection.execute(address.begin())
        cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
        found = cursor.execute(query.replace("NOW", f"at({store.clock.now()})").encode()).fetchall()
        connection.execute("ROLLBACK")
        return found


def _claim(limit: int = 100) -> Claim:
    return Claim(owner=OWNER, types=["mail", "fax"], limit=limit, start=limit, lease_ms=30_000)


async def test_ready_jobs_are_those_a_claim_would_take_in_its_order(store: Store) -> None:
    assert isinstance(store.clock, FakeClock)
    await store.jobs.enqueue(
        [
            NewJob(id="later", type="mail", delay_ms=60_000),
            NewJob(id="idle", type="mail", priority=10),
            NewJob(id="plain", type="mail", payload='{"n":1}'),
            NewJob(id="urgent", type="fax", priority=1),
            NewJob(id="soon", type="mail", priority=2, delay_ms=1_000),
            NewJob(id="after", type="mail", after=(Edge(parent_id="plain"),)),
            NewJob(id="expired", type="mail", expires_in_ms=500),
            NewJob(id="held", type="mail", queue="held"),
        ]
    )
    await store.controls.pause(PauseScope.QUEUE, "held")
    store.clock.advance(2)
    ready = _ask(store, "SELECT * FROM get_ready_jobs(100, NULL, NOW)")
    assert ready[2] == {"job_id": "plain", "job_type": "mail", "priority": 5, "payload": '{"n":1}'}
    only = _ask(store, "SELECT job_id FROM get_ready_jobs(100, '{fax}', NOW)")
    assert only == [{"job_id": "urgent"}]
    first = _ask(store, "SELECT job_id FROM get_ready_jobs(2, NULL, NOW)")
    assert [row["job_id"] for row in first] == ["urgent", "soon"]
    leases = (await store.jobs.claim(_claim())).leases
    assert [row["job_id"] for row in ready] == [lease.id for lease in leases]
    assert _ask(store, "SELECT * FROM get_ready_jobs(100, NULL, NOW)") == []


async def test_dependencies_are_satisfied_when_every_edge_says_so(store: Store) -> None:
    await store.jobs.enqueue([NewJob(id=name, type="mail") for name in ("one", "two")])
    both = (Edge(parent_id="one"), Edge(parent_id="two"))
    await store.jobs.enqueue([NewJob(id="child", type="mail", after=both)])
    for parent in ("one", "two", None):
        edges = (await store.reader.dependencies("child")).parents
        satisfied = all(edge.outcome is Outcome.SATISFIED for edge in edges)
        asked = _ask(store, "SELECT check_dependencies_satisfied('child') AS answer")
        assert asked == [{"answer": satisfied}]
        assert satisfied == (parent is None)
        if parent is not None:
            [lease] = (await store.jobs.claim(_claim(1))).leases
            await store.jobs.settle(OWNER, [_done(store, lease.id, lease.fence)])
    await store.jobs.enqueue([NewJob(id="doomed", type="mail")])
    await store.jobs.enqueue([NewJob(id="orphan", type="mail", after=(Edge(parent_id="doomed"),))])
    await store.jobs.cancel(["doomed"], "no longer needed")
    assert _ask(store, "SELECT check_dependencies_satisfied('orphan') AS a") == [{"a": False}]
    assert _ask(store, "SELECT check_dependencies_satisfied('unknown') AS a") == [{"a": None}]


async def test_statistics_agree_with_the_figures_of_the_store(store: Store) -> None:
    assert isinstance(store.clock, FakeClock)
    names = [f"job{n}" for n in range(8)]
    await store.jobs.enqueue([NewJob(id=name, type="mail", tenant_id="acme") for name in names])
    await store.jobs.enqueue([NewJob(id="later", type="mail", delay_ms=9_000)])
    leases = (await store.jobs.claim(_claim(4))).leases
    store.clock.advance(0.25)
    await store.jobs.settle(
        OWNER, [_done(store, lease.id, lease.fence, 250) for lease in leases[:3]]
    )
    await store.jobs.cancel([names[-1]], "no longer needed")
    await store.controls.pause(PauseScope.JOB, names[-2])
    [found] = _ask(store, "SELECT * FROM get_job_statistics(p_now => NOW)")
    [depth] = await store.metrics.depths()
    total = (await store.metrics.window(86_400_000))[0]
    assert found["pending_jobs"] == depth.pending == 1
    assert found["queued_jobs"] == depth.queued == 2
    assert found["in_progress_jobs"] == depth.in_progress == 1
    assert found["paused_jobs"] == depth.paused == 1
    assert found["completed_jobs"] == total.completed == 3
    assert found["cancelled_jobs"] == total.cancelled == 1
    assert found["failed_jobs"] == found["dead_letter_jobs"] == 0
    assert found["avg_duration_ms"] == 250
    assert found["total_jobs"] == len(names) + 1
    [own] = _ask(store, "SELECT total_jobs FROM get_job_statistics('acme', p_now => NOW)")
    assert own == {"total_jobs": len(names)}
    store.clock.advance(7_200)
    [recent] = _ask(store, "SELECT * FROM get_job_statistics(NULL, '1 hour', NOW)")
    assert recent["completed_jobs"] == 0


async def test_jobs_have_the_triggers_that_their_followers_need_and_no_others(
    store: Store,
) -> None:
    def conditions() -> set[str]:
        rows = _ask(
            store,
            "SELECT pg_get_triggerdef(oid) AS made FROM pg_trigger "
            "WHERE tgrelid = 'jobs'::regclass AND NOT tgisinternal",
        )
        return {"|".join(sorted(re.findall(r"'(\w+)'", str(row["made"])))) for row in rows}

    assert conditions() == set()
    await store.changes.follow("a.ended", [Status.COMPLETED])
    assert conditions() == {"completed"}
    await store.changes.follow("b.new", [Status.QUEUED, Status.COMPLETED])
    assert conditions() == {"completed|queued"}
    await store.changes.unfollow("b.new")
    assert conditions() == {"completed"}
    await store.changes.unfollow("a.ended")
    assert conditions() == set()


def _done(store: Store, job_id: str, fence: int, duration_ms: int = 0) -> Completed:
    return Completed(
        id=job_id,
        fence=fence,
        type="mail",
        queue="default",
        started_at=store.clock.now() - duration_ms,
        duration_ms=duration_ms,
        result="1",
    )
