"""One look at edges, lines and pauses, and its comparison with the model."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.json import decode

from penstock.model.controls import Pause
from penstock.model.dependency import EdgeKind
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import Dependency, Store
from proof.state_machine.flow_model import FlowModel


class Waits(NamedTuple):
    """All edges and pauses, and how many edges a sweep had to close."""

    edges: list[Dependency]
    pauses: list[Pause]
    swept: int


async def waits(store: Store, job_ids: Iterable[str]) -> Waits:
    """All that anybody waits for, in one look; each edge is seen from both of its ends."""
    found, pauses, swept = await asyncio.gather(
        asyncio.gather(*map(store.reader.dependencies, job_ids)),
        store.controls.pauses(),
        store.upkeep.release(),
    )
    down = [edge for several in found for edge in several.parents]
    up = [edge for several in found for edge in several.children]
    assert sorted(map(repr, down)) == sorted(map(repr, up)), "an edge looks different from its ends"
    return Waits(down, pauses, swept)


def check_edges(found: list[Dependency], model: FlowModel) -> None:
    """Every edge is there, closed the way it should be."""
    stored = [(seen.child_id, seen.edge, seen.outcome) for seen in found if not _in_line(seen)]
    expected = [(known.child_id, known.edge, known.outcome) for known in model.edges.known]
    assert sorted(map(repr, stored)) == sorted(map(repr, expected))
    for seen in found:
        assert (seen.outcome is None) == (seen.closed_at is None), seen
        parent, child = model.jobs[seen.edge.parent_id], model.jobs[seen.child_id]
        assert (seen.parent_status, seen.child_status) == (parent.status, child.status), seen
        assert seen.outcome is not None or not parent.status.terminal, f"{seen} is still open"
    places = {(s.child_id, s.edge.parent_id) for s in found if _in_line(s) and s.outcome is None}
    assert places == set(model.lines.pairs())


def check_jobs(jobs: Iterable[Job], model: FlowModel) -> None:
    """What waits is counted, what was passed on is there, and nobody steps out of line."""
    busy = Counter[tuple[str, str]]()
    for job in jobs:
        expected = model.jobs[job.id]
        assert job.waiting_on == model.waiting_on(job.id), job.id
        assert decode(job.payload) == decode(expected.payload), job.id
        assert (job.queued_at is not None) == expected.was_queued, job.id
        if job.status in (Status.QUEUED, Status.IN_PROGRESS):
            assert job.waiting_on == 0, f"{job.id} is {job.status} and waits"
            busy[job.tenant_id, job.order_key or job.id] += 1
    assert all(number == 1 for number in busy.values()), f"two at once in a line: {busy}"


def _in_line(seen: Dependency) -> bool:
    return seen.edge.kind is EdgeKind.ORDER
