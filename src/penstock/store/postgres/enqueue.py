"""Inserting many jobs at once: what they have in common is sent once, the rest as arrays."""

from collections.abc import Sequence
from typing import Any

from msgspec.json import encode
from msgspec.structs import astuple, replace

from penstock.model.job import Enqueued, NewJob
from penstock.store.postgres.round_trip import Alone, Question, RoundTrip, Row
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.relational.enqueue import enqueue, enqueue_each, is_special
from penstock.store.relational.transaction import Transaction

WORTHWHILE = 8
"""So many jobs of a kind, on average, are quicker together than one by one."""

SEPARATOR = "\x1f"
"""Between texts that travel as one; it is in no id, and JSON has another spelling for it."""

Together = tuple[str, str, str]
"""Jobs that differ in nothing but id and payload: what they share, their ids, their payloads."""


def enqueue_all(tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs; a known id or a taken key answers with the job that has it."""
    if len(jobs) == 1 and not is_special(jobs[0]):
        tx.changed = True
        [(_, fresh)] = tx.rows("enqueue_one", _values(jobs[0], tx.now))
        return [Enqueued(jobs[0].id, fresh)]
    groups = _alike(jobs)
    if groups is None:
        return enqueue(tx, jobs)
    tx.changed = True
    if len(groups) == 1:
        fresh = _insert(tx, groups[0])
    else:
        with tx.savepoint() as savepoint:
            fresh = all(_insert(tx, group) for group in groups)
            if not fresh:
                savepoint.undo()
    if fresh:
        return [Enqueued(job.id, True) for job in jobs]
    return enqueue_each(tx, jobs)


class EnqueueRoundTrip(RoundTrip[list[Enqueued]]):
    """An enqueue."""

    __slots__ = ("_jobs",)

    changes = True

    def __init__(self, jobs: Sequence[NewJob]) -> None:
        self._jobs = jobs

    def ask(self, alone: Alone) -> Question | None:
        """Insert one job, or jobs that are all alike."""
        if len(self._jobs) == 1:
            [job] = self._jobs
            return None if is_special(job) else ("enqueue_one", _values(job, alone.now))
        groups = _alike(self._jobs)
        if groups is None or len(groups) > 1:
            return None
        return "enqueue_alike", (*groups[0], alone.now)

    def answer(self, alone: Alone, rows: list[Row]) -> list[Enqueued] | None:
        """Read whether the jobs are new; of several, one that is not is looked for."""
        [(now, fresh)] = rows
        alone.heard(now)
        if not fresh and len(self._jobs) > 1:
            return None
        return [Enqueued(job.id, fresh) for job in self._jobs]

    def __call__(self, tx: PostgresTransaction) -> list[Enqueued]:
        """Insert any jobs."""
        return enqueue_all(tx, self._jobs)


def _values(job: NewJob, now: int | None) -> tuple[Any, ...]:
    """Return a job as the arguments of `enqueue_one`."""
    return (
        job.id,
        job.type,
        job.payload,
        job.queue,
        job.category,
        job.priority,
        job.max_retries,
        job.retry_delay_ms,
        job.backoff_multiplier,
        job.timeout_ms,
        job.delay_ms,
        job.scheduled_at,
        job.expires_in_ms,
        job.expires_at,
        job.tenant_id,
        job.workspace_id,
        job.created_by,
        job.parent_job_id,
        job.schedule_id,
        job.limit_key or "",
        list(job.tags) or None,
        job.metadata,
        job.keep_completed,
        job.keep_failed,
        job.trace_context,
        now,
    )


def _insert(tx: Transaction, group: Together) -> bool:
    """Insert jobs that are not there yet; none of them, if one was."""
    [(_, fresh)] = tx.rows("enqueue_alike", (*group, tx.now))
    return bool(fresh)


def _alike(jobs: Sequence[NewJob]) -> list[Together] | None:
    """The jobs by kind; none where each must be looked at, or is one of its kind."""
    groups: dict[tuple[Any, ...], list[NewJob]] = {}
    last: tuple[Any, ...] | None = None
    members: list[NewJob] = []
    for job in jobs:
        fields = astuple(job)
        kind = (fields[1], fields[3:])
        if kind != last:
            last, members = kind, groups.setdefault(kind, [])
        members.append(job)
    if len(groups) > 1 and len(jobs) < WORTHWHILE * len(groups):
        return None
    together = [_together(members) for members in groups.values()]
    found = [group for group in together if group is not None]
    return found if len(found) == len(together) else None


def _together(jobs: Sequence[NewJob]) -> Together | None:
    if is_special(jobs[0]):
        return None
    like = encode(replace(jobs[0], id="", payload="")).decode()
    ids = SEPARATOR.join([job.id for job in jobs])
    payloads = SEPARATOR.join([job.payload for job in jobs])
    between = len(jobs) - 1
    if ids.count(SEPARATOR) != between or payloads.count(SEPARATOR) != between:
        return None
    # A document with a NUL would be refused as a whole; the columns say what is wrong with it.
    return None if "\\u0000" in like or not ids else (like, ids, payloads)
