"""Inserting jobs, all of a call or none, under their unique keys."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from penstock.model.dependency import Edge
from penstock.model.job import Enqueued, KeyScope, NewJob, rank
from penstock.store.relational import order
from penstock.store.relational.release import distinct, link
from penstock.store.relational.transaction import Transaction


def enqueue(tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs; a known id or a taken key answers with the job that has it."""
    tx.changed = True
    if any(map(is_special, jobs)):
        return enqueue_each(tx, jobs)
    if len(jobs) == 1:
        job = jobs[0]
        return [Enqueued(job.id, tx.run("insert_job", row_of(tx, job)) == 1)]
    if _inserted_together(tx, jobs):
        return [Enqueued(job.id, True) for job in jobs]
    return enqueue_each(tx, jobs)


def is_special(job: NewJob) -> bool:
    """Whether a job must be looked at by itself."""
    return job.key is not None or job.order_key is not None or bool(job.after)


def enqueue_each(tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs, one by one where their keys, lines or ids ask for it, then link them."""
    several = len(jobs) > 1
    refused = _prepare(tx, jobs) if several else {}
    rest = [job for place, job in enumerate(jobs) if place not in refused]
    together = several and any(map(is_special, rest)) and _inserted_together(tx, rest)
    answers = [
        refused.get(place)
        or (Enqueued(job.id, True) if together else _enqueue_one(tx, job, has_key=several))
        for place, job in enumerate(jobs)
    ]
    # A parent in the same call may have turned out to be a job that is there already.
    known = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True)}
    edges: dict[str, list[Edge]] = {}
    for job, answer in zip(jobs, answers, strict=True):
        if job.after and answer.created:
            meant = [replace(e, parent_id=known.get(e.parent_id, e.parent_id)) for e in job.after]
            edges[job.id] = distinct(meant)
            merged = len(distinct(job.after)) - len(edges[job.id])
            if merged:
                tx.run("lower_waiting", (merged, tx.now, job.id))
    if edges:
        link(tx, edges)
    return answers


def _prepare(tx: Transaction, jobs: Sequence[NewJob]) -> dict[int, Enqueued]:
    """Take lines and keys in an order that all calls share, so that none wait for each other.

    Answers for the jobs, by their place, whose id is known or whose key another one holds.
    """
    lines = {(job.tenant_id, job.order_key) for job in jobs if job.order_key is not None}
    for tenant_id, order_key in sorted(lines):
        tx.lock("line", tenant_id, order_key)
    keyed = [
        (job.tenant_id, job.type, job.key, place)
        for place, job in enumerate(jobs)
        if job.key is not None
    ]
    answers = {place: _refused(tx, jobs[place]) for *_, place in sorted(keyed)}
    return {place: answer for place, answer in answers.items() if answer is not None}


def _inserted_together(tx: Transaction, jobs: Sequence[NewJob]) -> bool:
    """Insert jobs at once, or none of them if one has to find its place in line or is known."""
    if not jobs or any(job.order_key is not None for job in jobs):
        return False
    with tx.savepoint() as savepoint:
        if tx.many("insert_job", [row_of(tx, job) for job in jobs]) == len(jobs):
            return True
        savepoint.undo()
    return False


def _enqueue_one(tx: Transaction, job: NewJob, *, has_key: bool = False) -> Enqueued:
    """Insert a job; `has_key` when its key, if it has one, was taken before."""
    looked = not is_special(job) or (has_key and job.key is not None and job.order_key is None)
    refused = None if looked else _refused(tx, job)
    return refused or Enqueued(job.id, tx.run("insert_job", row_of(tx, job)) == 1)


def _refused(tx: Transaction, job: NewJob) -> Enqueued | None:
    """The answer for a job whose id is known or whose key another one holds."""
    if tx.value("known_id", (job.id,)) is not None:
        return Enqueued(job.id, False)
    if job.key is None:
        return None
    holder = take_key(
        tx, job.tenant_id, job.type, job.key, job.id, job.key_scope, job.key_window_ms
    )
    return None if holder == job.id else Enqueued(holder, False)


def take_key(
    tx: Transaction,
    tenant_id: str,
    type_: str,
    key: str,
    job_id: str,
    scope: KeyScope | None,
    window_ms: int | None,
) -> str:
    """Hold a unique key for a job, unless another one does; the id of the holder."""
    expires_at = tx.now + (window_ms or 0) if scope is KeyScope.WINDOW else None
    held = scope or KeyScope.UNTIL_DONE
    row = {
        "tenant_id": tenant_id,
        "type": type_,
        "key": key,
        "job_id": job_id,
        "scope": held.value,
        "expires_at": expires_at,
        "now": tx.now,
    }
    return str(tx.value("take_key", row))


def row_of(tx: Transaction, job: NewJob) -> tuple[Any, ...]:
    """What is inserted for a job: its id first, its payload last."""
    now = tx.now
    due = job.scheduled_at if job.scheduled_at is not None else now + job.delay_ms
    waiting_on = len(distinct(job.after)) if job.after else 0
    ready = due <= now and not waiting_on
    joined = ready
    if ready and job.order_key is not None:
        ready = order.join(tx, job.id, job.tenant_id, job.order_key)
        waiting_on = 0 if ready else 1
    expires_at = job.expires_at
    if expires_at is None and job.expires_in_ms is not None:
        expires_at = now + job.expires_in_ms
    return (
        job.id,
        job.type,
        job.queue,
        job.tenant_id,
        "queued" if ready else "pending",
        rank(due, job.priority),
        job.priority,
        job.max_retries,
        job.timeout_ms,
        due,
        now,
        now,
        now if joined else None,
        waiting_on,
        expires_at,
        job.retry_delay_ms,
        job.backoff_multiplier,
        job.category,
        job.workspace_id,
        job.created_by,
        job.parent_job_id,
        job.schedule_id,
        job.key,
        _scope_of(job),
        job.limit_key or "",
        job.order_key,
        tx.listed(job.tags) if job.tags else None,
        job.metadata,
        job.keep_completed,
        job.keep_failed,
        job.trace_context,
        job.payload,
    )


def _scope_of(job: NewJob) -> str | None:
    if job.key is None:
        return None
    return (job.key_scope or KeyScope.UNTIL_DONE).value
