"""Fault 17: many processes settle the parents of shared children at the same time."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.model.dependency import Edge, EdgeKind, OnFailure, decide
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import Store
from tests.faults.support.children import Child
from tests.faults.support.facts import TORTURE, figure, integrity, query
from tests.faults.support.graph import fan_in
from tests.faults.support.places import SERVERS, Place, check_structure, everything
from tests.faults.support.work import new_jobs, opened

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

WORKERS = figure(short=3, full=4)
EDGES = """
    SELECT edge.parent_id, edge.kind, edge.on_failure, edge.outcome, parent.status, child.status,
        (SELECT count(*) FROM job_executions WHERE job_id = child.id)
    FROM job_dependencies AS edge
    JOIN jobs AS parent ON parent.id = edge.parent_id
    JOIN jobs AS child ON child.id = edge.child_id
"""
LEFT_OVER = """
    SELECT id, status, waiting_on FROM jobs
    WHERE status NOT IN ('completed', 'cancelled', 'dead_letter') OR waiting_on <> 0
"""
TWICE = """
    SELECT job_id FROM job_executions WHERE status IN ('completed', 'dead', 'cancelled')
    GROUP BY job_id HAVING count(*) > 1
"""


@pytest.mark.quick
async def test_shared_children_of_parents_that_end_together_end_once_and_all(
    tmp_path: Path,
) -> None:
    path, luck = tmp_path / "work.db", Random(17)
    layers, width = figure(short=5, full=200), 40
    async with opened(path) as store:
        await store.jobs.enqueue(fan_in(luck, layers, width))
    said = settle_all(path)
    assert sum(what["settled"] for what in said) > layers * width / 2
    await check(path, said)


async def test_no_child_waits_for_ever_when_edges_are_added_while_parents_settle(
    tmp_path: Path,
) -> None:
    path, rounds = tmp_path / "work.db", figure(short=20, full=3_000)
    async with opened(path) as store:
        await store.jobs.enqueue(new_jobs(20))
    linkers = [("linker", path, f"linker:{n}", rounds) for n in range(2)]
    said = settle_all(path, linkers)
    assert sum(what.get("linked", 0) for what in said) > rounds
    await check(path, said)


@pytest.mark.parametrize("place", SERVERS, indirect=True)
@pytest.mark.parametrize("edges_added_meanwhile", [False, True] if TORTURE else [True])
async def test_no_deadlock_surfaces_and_the_sweep_finds_nothing_where_the_store_is_a_server(
    place: Place, edges_added_meanwhile: bool
) -> None:
    luck, rounds = Random(17), figure(short=10, full=1_000)
    jobs = fan_in(luck, figure(short=3, full=60), 30)
    async with opened(place.url) as store:
        await store.jobs.enqueue(jobs)
    several = range(figure(short=1, full=2))
    linkers = [("linker", place.url, f"linker:{n}", rounds) for n in several]
    said = await asyncio.to_thread(settle_all, place.url, linkers if edges_added_meanwhile else ())
    assert [error for what in said for error in what["errors"]] == []
    assert sum(what.get("stale", 0) for what in said) == 0
    async with opened(place.url) as store:
        assert await store.upkeep.release() == 0
        for job in await everything(store):
            assert job.status.terminal, job
            assert job.waiting_on == 0
            await check_job(store, job)
        await check_structure(place, store)


async def check_job(store: Store, job: Job) -> None:
    """It ended once, and its edges were closed as its parents ended."""
    history = await store.reader.executions(job.id)
    assert sum(execution.status in ("completed", "dead", "cancelled") for execution in history) <= 1
    for one in (await store.reader.dependencies(job.id)).parents:
        assert one.parent_status is not None
        assert one.outcome == decide(one.edge, one.parent_status, None)
        ran = job.status is Status.COMPLETED or history
        assert one.outcome == "satisfied" or not ran


def settle_all(path: Path | str, others: Sequence[tuple[Any, ...]] = ()) -> list[dict[str, Any]]:
    """Let everybody loose at once; workers that came to an end too early are sent again."""
    with ExitStack() as stack:
        linkers = [stack.enter_context(Child(*words)) for words in others]
        workers = [
            stack.enter_context(Child("settler", path, f"settler:{n}")) for n in range(WORKERS)
        ]
        children = [*linkers, *workers]
        assert {child.answer() for child in children} == {"ready"}
        for child in children:
            child.tell()
        said = [child.answer(600) for child in children]
    if others:
        with Child("settler", path, "settler:last") as last:
            last.answer()
            last.tell()
            said.append(last.answer(600))
    return said


async def check(path: Path, said: Sequence[dict[str, Any]]) -> None:
    """Nothing surfaced, everything ended once and as its edges say, and the sweep found nothing."""
    assert [error for what in said for error in what["errors"]] == []
    assert sum(what.get("stale", 0) for what in said) == 0
    async with opened(path) as store:
        assert await store.upkeep.release() == 0
    assert query(path, LEFT_OVER) == []
    assert query(path, TWICE) == []
    for parent_id, kind, on_failure, outcome, parent, child, executions in query(path, EDGES):
        edge = Edge(parent_id=parent_id, kind=EdgeKind(kind), on_failure=OnFailure(on_failure))
        assert outcome == decide(edge, Status(parent), None)
        assert outcome == "satisfied" or (child != "completed" and executions == 0)
    assert integrity(path) == "ok"
