"""One look at all that decides whether a job runs, and the edges between jobs."""

from msgspec.structs import replace

from penstock.model.breaker import BreakerState
from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.job import Job, KeyScope
from penstock.model.limits import Limit, LimitKind, LimitState, frees_in, room
from penstock.model.pause import Pause, PauseScope
from penstock.model.states import Status, sources
from penstock.store.contract import Dependencies, Dependency, Standing
from penstock.store.sqlite import breakers, controls, lookup, workers
from penstock.store.sqlite.gates import Leased, read_starts
from penstock.store.sqlite.transaction import Transaction

COUNTED_TO = 1_000
PARENTS_SHOWN = 100


def dependencies(tx: Transaction, job_id: str, limit: int) -> Dependencies:
    """The edges of a job in both directions, the open ones first."""
    return Dependencies(
        [_dependency(*row) for row in tx.rows("parents_of", (job_id, limit))],
        [_dependency(*row) for row in tx.rows("children_of", (job_id, limit))],
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
        waits_for=_waits_for(tx, job),
        pauses=_pauses_on(tx, job),
        limits=[_limit_state(tx, limit) for limit in controls.limits_on(tx, *lane)],
        breakers=_breakers_on(tx, job),
        workers=workers.known(tx),
        ahead=_ahead(tx, job) if queued else 0,
        tenants=int(tx.value("other_tenants", (job.queue, job.tenant_id))) if queued else 0,
        key_holder=_key_holder(tx, job),
    )


def _waits_for(tx: Transaction, job: Job) -> list[Dependency]:
    if job.waiting_on == 0:
        return []
    return [_dependency(*row) for row in tx.rows("open_parents_of", (job.id, PARENTS_SHOWN))]


def _pauses_on(tx: Transaction, job: Job) -> list[Pause]:
    about = {
        PauseScope.JOB: job.id,
        PauseScope.QUEUE: job.queue,
        PauseScope.TYPE: job.type,
        PauseScope.TENANT: job.tenant_id,
    }
    rows = (tx.row("pause_of", (scope.value, name)) for scope, name in about.items())
    return [
        Pause(scope=PauseScope(scope), name=name, reason=reason, paused_by=by, created_at=at)
        for scope, name, reason, by, at in filter(None, rows)
    ]


def _limit_state(tx: Transaction, limit: Limit) -> LimitState:
    """How much of one limit is taken: reads what runs under it, and nothing of other limits."""
    name = (limit.scope, limit.name)
    if limit.kind is LimitKind.RATE:
        starts = read_starts(tx, name)
        used = limit.capacity - room(starts, limit, tx.now)
        return LimitState(limit=limit, used=used, frees_in_ms=frees_in(starts, limit, tx.now))
    about = {"scope": limit.scope.value, "name": limit.name}
    leased = tx.rows("leased_under", about)
    holders = tx.rows("holders", about | {"limit": controls.SHOWN_HOLDERS}) if leased else []
    used = sum(Leased(leases, started).taken(slots) for leases, started, slots in leased)
    return LimitState(limit=limit, used=used, holders=tuple(row[0] for row in holders))


def _breakers_on(tx: Transaction, job: Job) -> list[BreakerState]:
    """Those that guard the job's type; a probe counts only while it runs."""
    found = []
    for state in breakers.known(tx):
        if job.type in state.breaker.types:
            running = tx.value("status_of", (state.probe_id,)) == Status.IN_PROGRESS
            found.append(state if running else replace(state, probe_id=None))
    return found


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
