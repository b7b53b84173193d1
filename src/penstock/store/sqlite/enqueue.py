"""Inserting jobs, all of a call or none, under their unique keys."""

from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.job import Enqueued, KeyScope, NewJob
from penstock.model.rank import rank
from penstock.store.sqlite.transaction import Savepoint, Transaction


def enqueue(tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs; a known id or a taken key answers with the job that has it."""
    tx.changed = True
    if len(jobs) == 1 or any(job.key is not None for job in jobs):
        return [_enqueue_one(tx, job) for job in jobs]
    with Savepoint(tx.connection) as savepoint:
        if tx.many("insert_job", [_row(tx, job) for job in jobs]) == len(jobs):
            return [Enqueued(job.id, True) for job in jobs]
        savepoint.undo()
    return [_enqueue_one(tx, job) for job in jobs]


def _enqueue_one(tx: Transaction, job: NewJob) -> Enqueued:
    if job.key is not None and tx.value("known_id", (job.id,)) is None:
        holder = tx.value("key_holder", (job.tenant_id, job.type, job.key, tx.now))
        if holder is not None:
            return Enqueued(holder, False)
        take_key(tx, job.tenant_id, job.type, job.key, job.id, job.key_scope, job.key_window_ms)
    return Enqueued(job.id, tx.many("insert_job", (_row(tx, job),)) == 1)


def take_key(
    tx: Transaction,
    tenant_id: str,
    type_: str,
    key: str,
    job_id: str,
    scope: KeyScope | None,
    window_ms: int | None,
) -> None:
    """Hold a unique key for a job."""
    expires_at = tx.now + (window_ms or 0) if scope is KeyScope.WINDOW else None
    held = scope or KeyScope.UNTIL_DONE
    tx.run("take_key", (tenant_id, type_, key, job_id, held.value, expires_at))


def _row(tx: Transaction, job: NewJob) -> tuple[Any, ...]:
    now = tx.now
    due = job.scheduled_at if job.scheduled_at is not None else now + job.delay_ms
    ready = due <= now
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
        now if ready else None,
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
        job.limit_key,
        job.order_key,
        encode(job.tags).decode() if job.tags else None,
        job.metadata,
        job.trace_context,
        job.payload,
    )


def _scope_of(job: NewJob) -> str | None:
    if job.key is None:
        return None
    return (job.key_scope or KeyScope.UNTIL_DONE).value
