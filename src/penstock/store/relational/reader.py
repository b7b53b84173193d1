"""Questions about jobs in SQL."""

from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from penstock.model.controls import BreakerState, Pause, limits_on, pausable
from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.job import Job, KeyScope
from penstock.model.states import Status, sources
from penstock.store.contract import (
    Dependencies,
    Dependency,
    Execution,
    Found,
    FoundIds,
    JobFilter,
    LogLine,
    Standing,
)
from penstock.store.contract.reader import PARENTS_SHOWN
from penstock.store.contract.store import watch
from penstock.store.relational import lookup, workers
from penstock.store.relational.breakers import is_probing, known_breakers
from penstock.store.relational.controls import known_limits, limit_states, pause_of
from penstock.store.relational.search import Narrow, by_status, find, search, search_ids
from penstock.store.relational.transaction import Database, StorePart, Transaction, reads


def dependencies(tx: Transaction, job_id: str, limit: int) -> Dependencies:
    """The edges of a job in both directions, the open ones first."""
    return Dependencies(
        [_dependency(*row) for row in tx.rows("parents_of", (job_id, limit))],
        [_dependency(*row) for row in tx.rows("children_of", (job_id, limit))],
    )


def open_parents(tx: Transaction, job_id: str, limit: int) -> list[Dependency]:
    """What a job still waits for."""
    parents = (_dependency(*row) for row in tx.rows("parents_of", (job_id, limit)))
    return [parent for parent in parents if parent.outcome is None]


def _dependency(
    child_id: str,
    parent_id: str,
    kind: str,
    condition: str | None,
    argument: str,
    position: int | None,
    on_failure: str,
    on_requeue: str,
    parent_type: str | None,
    parent_status: str | None,
    child_type: str | None,
    child_status: str | None,
    outcome: str | None,
    closed_at: int | None,
) -> Dependency:
    edge = Edge(
        parent_id=parent_id,
        kind=EdgeKind(kind),
        condition=condition,
        argument=argument or None,
        position=position,
        on_failure=OnFailure(on_failure),
        on_requeue=OnRequeue(on_requeue),
    )
    return Dependency(
        child_id=child_id,
        edge=edge,
        parent_type=parent_type,
        parent_status=None if parent_status is None else Status(parent_status),
        child_type=child_type,
        child_status=None if child_status is None else Status(child_status),
        outcome=None if outcome is None else Outcome(outcome),
        closed_at=closed_at,
    )


def standing(tx: Transaction, job_id: str) -> Standing | None:
    """All that decides whether a job runs now."""
    found = lookup.get(tx, [job_id])
    if not found:
        return None
    job = found[0]
    lane = (job.queue, job.tenant_id, job.type, job.limit_key)
    queued = job.status is Status.QUEUED
    return Standing(
        now=tx.now,
        job=job,
        waits_for=open_parents(tx, job.id, PARENTS_SHOWN) if job.waiting_on else [],
        pauses=_pauses_on(tx, job),
        limits=limit_states(tx, limits_on(known_limits(tx), *lane)),
        breakers=_breakers_on(tx, job),
        workers=workers.known(tx),
        ahead=_ahead(tx, job) if queued else 0,
        tenants=int(tx.value("other_tenants", (job.queue, job.tenant_id))) if queued else 0,
        key_holder=_key_holder(tx, job),
    )


def _pauses_on(tx: Transaction, job: Job) -> list[Pause]:
    about = pausable(job).items()
    return [found for named in about if (found := pause_of(tx, *named)) is not None]


def _breakers_on(tx: Transaction, job: Job) -> list[BreakerState]:
    """Those that guard the job's type; a probe counts only while it runs."""
    return [
        state if is_probing(tx, state) else replace(state, probe_id=None)
        for state in known_breakers(tx)
        if job.type in state.breaker.types
    ]


def _ahead(tx: Transaction, job: Job) -> int:
    lane = {
        "queue": job.queue,
        "tenant_id": job.tenant_id,
        "type": job.type,
        "limit_key": job.limit_key or "",
    }
    return int(tx.value("ahead", lane | {"rank": tx.value("rank_of", (job.id,))}))


def _key_holder(tx: Transaction, job: Job) -> str | None:
    if job.key is None or job.status not in sources("requeue"):
        return None
    if job.key_scope is KeyScope.WHILE_PENDING:
        return None
    holder = tx.value("key_holder", (job.tenant_id, job.type, job.key, tx.now))
    return None if holder == job.id else holder


class RelationalReader(StorePart):
    """`JobReader` in SQL."""

    def __init__(self, database: Database, narrow: Narrow = by_status) -> None:
        super().__init__(database)
        self._narrow = narrow

    @reads
    def get(self, tx: Transaction, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        return lookup.get(tx, ids)

    @reads
    def find(self, tx: Transaction, where: JobFilter) -> list[Job]:
        """A page of jobs, newest first."""
        return find(tx, where, self._narrow)

    @reads
    def search(self, tx: Transaction, where: JobFilter) -> Found:
        """A page of jobs, newest first, in bounded time."""
        return search(tx, where, self._narrow)

    @reads
    def search_ids(self, tx: Transaction, where: JobFilter) -> FoundIds:
        """The ids of such a page."""
        return search_ids(tx, where, self._narrow)

    @reads
    def running(self, tx: Transaction, limit: int = 50) -> list[Job]:
        """Jobs under a lease, the longest running first."""
        return lookup.get(tx, [row[0] for row in tx.rows("running_ids", (limit,))])

    @reads
    def executions(self, tx: Transaction, job_id: str) -> list[Execution]:
        """A job's executions, oldest first."""
        return lookup.executions(tx, job_id)

    @reads
    def logs(self, tx: Transaction, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The latest lines its handler kept."""
        return lookup.logs(tx, job_id, limit)

    @reads
    def dependencies(self, tx: Transaction, job_id: str, limit: int = 1000) -> Dependencies:
        """The edges of a job in both directions."""
        return dependencies(tx, job_id, limit)

    @reads
    def waiting(self, tx: Transaction, after: str | None = None, limit: int = 1000) -> list[Job]:
        """A page of all jobs that have not ended and do not run."""
        return lookup.waiting(tx, after, limit)

    @reads
    def standing(self, tx: Transaction, job_id: str) -> Standing | None:
        """All that decides whether a job runs now."""
        return standing(tx, job_id)

    def watch(self, ids: Sequence[str]) -> AsyncGenerator[Job, None]:
        """Each job now and whenever it changes, until all are terminal."""
        return watch(self.get, self.db.subscribe, ids)
