"""Run a finished job again: a new job with the same call, and the links between the two."""

from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError
from msgspec.json import decode, encode

from penstock.model.dependency import EdgeKind
from penstock.model.errors import IllegalTransition
from penstock.model.ids import new_id
from penstock.model.job import KeyScope, NewJob
from penstock.store.contract import JobFilter

if TYPE_CHECKING:
    from penstock.model.dependency import Edge
    from penstock.model.job import Job
    from penstock.store.contract import Store

MARK = "ran_again_from"
"""Where the metadata of a job name the finished job whose call it repeats."""

SHOWN = 100
_COPIED = (
    *("type", "payload", "queue", "category", "priority", "max_retries", "retry_delay_ms"),
    *("backoff_multiplier", "timeout_ms", "tenant_id", "workspace_id", "limit_key", "order_key"),
    *("tags", "keep_completed", "keep_failed"),
)
_ENDS_WITH_ITS_JOB = (KeyScope.WHILE_PENDING, KeyScope.UNTIL_DONE)


def ran_again_from(job: "Job") -> str | None:
    """The finished job whose call this one repeats, if it does."""
    found = _metadata(job).get(MARK)
    return found if isinstance(found, str) and found == job.parent_job_id else None


async def ran_again_as(store: "Store", job: "Job") -> list[str]:
    """The newest jobs that repeat the call of this one, newest first."""
    where = JobFilter(parent_job_id=job.id, tenant_id=job.tenant_id, limit=SHOWN)
    return [each.id for each in await store.reader.find(where) if ran_again_from(each) == job.id]


async def repeated(store: "Store", job: "Job", created_by: str | None) -> NewJob:
    """A new job with the call and the options of a finished one, due at once.

    One that never started waits again for what it waited for. A key that outlives its job stays
    with that job: running it again is what somebody asks for on purpose.
    """
    if not job.status.terminal:
        raise IllegalTransition(job.status, "run again", job.id)
    keyed = job.key_scope in _ENDS_WITH_ITS_JOB
    return NewJob(
        id=new_id(),
        **{name: getattr(job, name) for name in _COPIED},
        expires_in_ms=None if job.expires_at is None else max(1, job.expires_at - job.created_at),
        key=job.key if keyed else None,
        key_scope=job.key_scope if keyed else None,
        created_by=created_by or job.created_by,
        parent_job_id=job.id,
        metadata=encode(_metadata(job) | {MARK: job.id}).decode(),
        after=() if job.started_at is not None else await _edges(store, job.id),
    )


async def steps_after(store: "Store", job_id: str) -> int:
    """How many jobs wait, or waited, for this one in its flow; run again, it repeats none."""
    found = (await store.reader.dependencies(job_id)).children
    return sum(each.edge.kind is not EdgeKind.ORDER for each in found)


async def _edges(store: "Store", job_id: str) -> "tuple[Edge, ...]":
    found = (await store.reader.dependencies(job_id)).parents
    return tuple(each.edge for each in found if each.edge.kind is not EdgeKind.ORDER)


def _metadata(job: "Job") -> dict[str, Any]:
    try:
        found = decode(job.metadata or "{}")
    except MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
