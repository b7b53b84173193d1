"""One look at all that decides whether a job runs, and the edges between jobs."""

from itertools import islice
from typing import Any

from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.job import Job
from penstock.model.pause import Pause, PauseScope
from penstock.model.states import Status
from penstock.store.contract import Dependencies, Dependency, Standing
from penstock.store.sqlite import breakers, controls, lookup, workers
from penstock.store.sqlite.transaction import Transaction

COUNTED_TO = 1_000


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
    parents = [_dependency(*row) for row in tx.rows("parents_of", (job_id, COUNTED_TO))]
    queued = job.status is Status.QUEUED
    return Standing(
        now=tx.now,
        job=job,
        waits_for=[parent for parent in parents if parent.outcome is None],
        pauses=_pauses_on(tx, job),
        limits=controls.states_of(tx, controls.limits_on(tx, *lane)),
        breakers=[s for s in breakers.known(tx) if job.type in s.breaker.types],
        workers=workers.known(tx),
        ahead=_ahead(tx, job) if queued else 0,
        tenants=_other_tenants(tx, job) if queued else 0,
        key_holder=_key_holder(tx, job),
    )


def _pauses_on(tx: Transaction, job: Job) -> list[Pause]:
    about = {
        PauseScope.JOB: job.id,
        PauseScope.QUEUE: job.queue,
        PauseScope.TYPE: job.type,
        PauseScope.TENANT: job.tenant_id,
    }
    return [pause for pause in controls.pauses(tx) if about[pause.scope] == pause.name]


def _ahead(tx: Transaction, job: Job) -> int:
    lane = {
        "queue": job.queue,
        "tenant_id": job.tenant_id,
        "type": job.type,
        "limit_key": job.limit_key or "",
    }
    return int(tx.value("ahead", lane | {"rank": tx.value("rank_of", (job.id,))}))


def _other_tenants(tx: Transaction, job: Job) -> int:
    def walk() -> Any:
        tenant = tx.value("first_tenant", (job.queue,))
        while tenant is not None:
            yield tenant
            tenant = tx.value("next_tenant", (job.queue, tenant))

    return sum(tenant != job.tenant_id for tenant in islice(walk(), COUNTED_TO))


def _key_holder(tx: Transaction, job: Job) -> str | None:
    if job.key is None or not job.status.terminal:
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
