"""Answers to questions about jobs."""

from collections.abc import Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

from penstock.model.job import Job, KeyScope
from penstock.model.states import Status
from penstock.store.contract import Execution, JobFilter, LogLine
from penstock.store.relational.transaction import Transaction, readable

_COLUMNS = Job.__struct_fields__
_SCOPES = {scope.value: scope for scope in KeyScope}


def get(tx: Transaction, ids: Sequence[str]) -> list[Job]:
    """The jobs that exist, in the order asked."""
    rows = tx.rows("get_jobs", (tx.listed(ids),))
    found = {row[0]: _job(tx, row) for row in rows}
    return [found[job_id] for job_id in ids if job_id in found]


def find(tx: Transaction, where: JobFilter) -> list[Job]:
    """A page of jobs, newest first."""
    bindings = {
        "status": where.status.value if where.status else None,
        "type": where.type,
        "queue": where.queue,
        "tenant_id": where.tenant_id,
        "tag": where.tag,
        "parent_job_id": where.parent_job_id,
        "schedule_id": where.schedule_id,
        "before": where.before,
        "limit": where.limit,
    }
    return [_job(tx, row) for row in tx.rows("find_jobs", bindings)]


def waiting(tx: Transaction, after: str | None, limit: int) -> list[Job]:
    """A page of all jobs that have not ended and do not run."""
    rows = tx.rows("waiting_jobs", {"after": after, "limit": limit})
    return [_job(tx, row) for row in rows]


def executions(tx: Transaction, job_id: str) -> list[Execution]:
    """A job's executions, oldest first, the running one included."""
    ended = [_execution(*row) for row in tx.rows("executions", (job_id,))]
    running = tx.row("running_execution", (job_id,))
    if running is None:
        return ended
    job, fence, started_at, owner, queued_at = running
    return [
        *ended,
        Execution(
            job_id=job,
            fence=fence,
            status="running",
            started_at=started_at,
            ended_at=None,
            duration_ms=tx.now - started_at,
            wait_ms=started_at - queued_at,
            result=None,
            error=None,
            error_class=None,
            error_code=None,
            error_stack=None,
            worker=owner,
            node=node_of(owner),
            memory_kb=None,
            cpu_ms=None,
        ),
    ]


def logs(tx: Transaction, job_id: str, limit: int) -> list[LogLine]:
    """The lines its handler kept, oldest first."""
    return [LogLine(*row) for row in tx.rows("logs", (job_id, limit))]


def node_of(owner: str | None) -> str | None:
    """The host in a lease owner's name."""
    return None if owner is None else owner.partition(":")[0]


def _job(tx: Transaction, row: tuple[Any, ...]) -> Job:
    fields = dict(zip(_COLUMNS, row, strict=True))
    fields["status"] = Status(fields["status"])
    fields["payload"] = readable(fields["payload"])
    fields["key_scope"] = _SCOPES.get(fields["key_scope"])
    fields["tags"] = _tags(fields["tags"])
    if fields["lease_until"] is not None:
        fields["lease_until"] += tx.now - tx.monotonic
    return Job(**fields)


def _tags(stored: str | None) -> tuple[str, ...]:
    if not stored:
        return ()
    try:
        return decode(stored, type=tuple[str, ...])
    except DecodeError:  # edited by hand: shown as it is, so that the job can still be listed
        return (stored,)


def _execution(
    job_id: str,
    fence: int,
    status: str,
    started_at: int,
    ended_at: int,
    duration_ms: int | None,
    wait_ms: int | None,
    result: str | None,
    error: str | None,
    error_class: str | None,
    error_code: str | None,
    error_stack: str | None,
    worker: str | None,
    memory_kb: int | None,
    cpu_ms: int | None,
) -> Execution:
    return Execution(
        job_id=job_id,
        fence=fence,
        status=status,
        started_at=started_at,
        ended_at=ended_at,
        duration_ms=duration_ms,
        wait_ms=wait_ms,
        result=result,
        error=error,
        error_class=error_class,
        error_code=error_code,
        error_stack=error_stack,
        worker=worker,
        node=node_of(worker),
        memory_kb=memory_kb,
        cpu_ms=cpu_ms,
    )
