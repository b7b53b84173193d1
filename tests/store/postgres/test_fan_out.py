"""Thousands of children of one parent cost a few statements, and each finds its row at once."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.model.dependency import EdgeKind, OnFailure
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.store.postgres.connect import Connection
from penstock.store.postgres.transaction import PostgresTransaction
from proof.conformance.build import (
    OWNER,
    a_claim,
    a_job,
    an_edge,
    claim_one,
    completed,
    enqueue,
    job_of,
    status_of,
)

CHILDREN = 300
A_FEW = 40
EDGES = """
INSERT INTO job_dependencies (child_id, parent_id, kind, on_failure, on_requeue, created_at)
SELECT 'child ' || n, 'parent', 'success', 'cancel', 'restore', now()
FROM generate_series(1, 2000) AS n
"""
READS = """
SELECT coalesce(sum(idx_tup_fetch), 0)::bigint FROM pg_stat_xact_user_tables
WHERE relname = 'job_dependencies' AND schemaname = current_schema()
"""
JOBS = """
INSERT INTO jobs_live (id, type, queue, status, rank, priority, timeout_ms, scheduled_at,
    created_at, updated_at, payload)
SELECT 'child ' || n, 'mail', 'default', 'pending', 0, 5, 0, now(), now(), now(), '{}'::json
FROM generate_series(1, 2000) AS n
UNION ALL SELECT 'parent', 'mail', 'default', 'pending', 0, 5, 0, now(), now(), now(), '{}'::json
"""
LIVE_READS = """
SELECT (seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_xact_user_tables
WHERE relname = 'jobs_live' AND schemaname = current_schema()
"""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the queries that were run, once for every row."""
    run: list[str] = []
    execute, many = PostgresTransaction._execute, PostgresTransaction.many

    def noted(tx: PostgresTransaction, name: str, bindings: Any) -> Any:
        run.append(name)
        return execute(tx, name, bindings)

    def noted_many(tx: PostgresTransaction, name: str, rows: Any) -> int:
        given, before = list(rows), len(run)
        changed = many(tx, name, given)
        run.extend([name] * (len(given) if len(run) == before else 0))
        return changed

    monkeypatch.setattr(PostgresTransaction, "_execute", noted)
    monkeypatch.setattr(PostgresTransaction, "many", noted_many)
    return run


async def _cost(statements: list[str], call: Callable[[], Awaitable[object]]) -> int:
    before = len(statements)
    await call()
    return len(statements) - before


async def test_enqueueing_and_releasing_children_costs_no_statement_for_each(
    store: Store, statements: list[str]
) -> None:
    parent = await enqueue(store, type="parent")
    lease = await claim_one(store, types=("parent",))
    edge = an_edge(parent, kind=EdgeKind.DATA, argument="given")
    children = [a_job(after=(edge,), tags=("odd",) * (n % 2)) for n in range(CHILDREN)]
    assert await _cost(statements, lambda: store.jobs.enqueue(children)) < A_FEW
    done = completed(lease, '{"n": 1}')
    assert await _cost(statements, lambda: store.jobs.settle(OWNER, [done])) < A_FEW
    claimed = await store.jobs.claim(a_claim(limit=CHILDREN))
    assert {lease.id for lease in claimed.leases} == {child.id for child in children}
    assert all('"given":{"n": 1}' in lease.payload for lease in claimed.leases)
    assert (await job_of(store, children[1].id)).tags == ("odd",)
    assert (await job_of(store, children[2].id)).tags == ()


@pytest.mark.parametrize(
    ("on_failure", "status"),
    [(OnFailure.CANCEL, Status.CANCELLED), (OnFailure.DEAD_LETTER, Status.DEAD_LETTER)],
)
async def test_ending_children_with_their_parent_costs_no_statement_for_each(
    store: Store, statements: list[str], on_failure: OnFailure, status: Status
) -> None:
    parent = await enqueue(store)
    edge = an_edge(parent, on_failure=on_failure.value)
    children = [a_job(after=(edge,)) for _ in range(CHILDREN)]
    await store.jobs.enqueue(children)
    await enqueue(store, order_key="line")  # so that lines are looked at
    assert await _cost(statements, lambda: store.jobs.cancel([parent], "no")) < A_FEW
    ended = await store.reader.get([child.id for child in children])
    assert {job.status for job in ended} == {status}


async def test_cancelling_many_jobs_costs_no_statement_for_each(
    store: Store, statements: list[str]
) -> None:
    ids = [answer.id for answer in await store.jobs.enqueue([a_job() for _ in range(CHILDREN)])]
    assert await _cost(statements, lambda: store.jobs.cancel(ids, "no")) < A_FEW
    assert await status_of(store, ids[-1]) is Status.CANCELLED


@pytest.mark.parametrize("name", ["close_edge", "close_edge_all"])
def test_one_edge_of_a_parent_is_found_without_a_look_at_the_others(
    tx: Connection, name: str
) -> None:
    tx.execute(EDGES)
    [(before,)] = tx.execute(READS).fetchall()
    close = PostgresTransaction(tx, 0, 0)
    edges = [("satisfied", None, 0, f"child {n}", "parent", "success", "") for n in range(1, 101)]
    if name == "close_edge":
        assert sum(close.run(name, edge) for edge in edges) == len(edges)
    else:
        assert close.many("close_edge", edges) == len(edges)
    [(after,)] = tx.execute(READS).fetchall()
    assert after - before <= 2 * 2000  # and not so many for each


def test_a_parent_is_looked_up_once_and_not_for_every_edge_whatever_the_statistics_say(
    tx: Connection,
) -> None:
    # Pages that were full when the statistics were made, of rows that were gone by then.
    tx.execute(JOBS)
    tx.execute("DELETE FROM jobs_live")
    tx.execute("ANALYZE jobs_live, job_dependencies")
    tx.execute(JOBS)
    tx.execute(EDGES)
    [(before,)] = tx.execute(LIVE_READS).fetchall()
    edges = PostgresTransaction(tx, 0, 0).rows("open_edges", {"parents": ["parent"]})
    [(after,)] = tx.execute(LIVE_READS).fetchall()
    assert len(edges) == 2000
    assert {edge[6] for edge in edges} == {"pending"}
    assert after - before <= 2 * 2000
