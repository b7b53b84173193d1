"""A job with all that it waits for and all that waits for it."""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.model.job import Job
    from penstock.store.contract import Dependency, Store

MAX_JOBS = 1_000


class Family:
    """Jobs and the edges between them, as far as they were looked at."""

    def __init__(self, job: "Job") -> None:
        self.asked = job.id
        self.jobs: dict[str, tuple[str | None, str | None]] = {job.id: (job.type, job.status)}
        self.edges: dict[tuple[str, str, str, str | None], Dependency] = {}
        self.more = False

    def learn(self, edge: "Dependency") -> None:
        """Take in an edge and the jobs at its ends."""
        parent_id, kind, argument = edge.edge.parent_id, edge.edge.kind, edge.edge.argument
        self.edges[edge.child_id, parent_id, kind, argument] = edge
        self.jobs.setdefault(parent_id, (edge.parent_type, edge.parent_status))
        self.jobs.setdefault(edge.child_id, (edge.child_type, edge.child_status))

    def keep(self, ids: "Collection[str]") -> None:
        """Leave out all other jobs and the edges to them."""
        self.jobs = {job_id: found for job_id, found in self.jobs.items() if job_id in ids}
        self.edges = {
            key: edge
            for key, edge in self.edges.items()
            if edge.child_id in ids and edge.edge.parent_id in ids
        }

    @property
    def roots(self) -> list[str]:
        """The jobs that wait for none of the others."""
        waiting = {edge.child_id for edge in self.edges.values()}
        return [job_id for job_id in self.jobs if job_id not in waiting]

    def children(self, job_id: str) -> "dict[str, list[Dependency]]":
        """What waits for a job, with the edges to it."""
        found: dict[str, list[Dependency]] = {}
        for edge in self.edges.values():
            if edge.edge.parent_id == job_id:
                found.setdefault(edge.child_id, []).append(edge)
        return found


async def family_of(store: "Store", job: "Job", limit: int = MAX_JOBS) -> Family:
    """Follow the edges of a job in both directions, up to a thousand jobs, the nearest first."""
    family = Family(job)
    todo, seen = deque([job.id]), {job.id}
    while todo:
        found = await store.reader.dependencies(todo.popleft(), limit)
        for edge in (*found.parents, *found.children):
            if len(family.jobs) >= limit:
                family.more = True
                return family
            family.learn(edge)
            for job_id in (edge.edge.parent_id, edge.child_id):
                if job_id not in seen:
                    seen.add(job_id)
                    todo.append(job_id)
    return family
