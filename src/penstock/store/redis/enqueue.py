"""Inserting jobs: what they have in common is sent once, however many they are."""

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec.json import encode

from penstock.model.errors import InvalidOption
from penstock.model.job import Enqueued, KeyScope, NewJob
from penstock.store.contract.errors import not_unicode
from penstock.store.redis.keys import encode_doc, encode_lane
from penstock.store.redis.release import decided, edges_as_rows
from penstock.store.redis.scripts import Scripts

MAX_BATCH = 10_000

_shape_of = attrgetter(
    "queue",
    "tenant_id",
    "type",
    "limit_key",
    "priority",
    "max_retries",
    "timeout_ms",
    "category",
    "delay_ms",
    "scheduled_at",
    "expires_in_ms",
    "expires_at",
    "retry_delay_ms",
    "backoff_multiplier",
    "trace_context",
    "created_by",
    "tags",
    "workspace_id",
    "parent_job_id",
    "schedule_id",
    "metadata",
    "key",
    "key_scope",
    "key_window_ms",
    "order_key",
    "keep_completed",
    "keep_failed",
    "after",
)


async def enqueue(scripts: Scripts, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs; a known id or a taken key answers with the job that has it."""
    if len(jobs) > MAX_BATCH:
        expected = f"at most {MAX_BATCH:,} in one call to a Redis store, which does nothing else"
        raise InvalidOption("jobs", len(jobs), f"{expected} meanwhile")
    try:
        one = _one(jobs[0]) if len(jobs) == 1 and _is_plain(jobs[0]) else None
        arguments = as_arguments(jobs) if one is None else []
    except UnicodeEncodeError as error:
        raise not_unicode(error) from error
    if one is not None:
        made = await scripts.call("enqueue_one", *one)
        return [Enqueued(jobs[0].id, made == 1)]
    return enqueued(jobs, await decided(scripts, "enqueue", *arguments))


def _is_plain(job: NewJob) -> bool:
    """Whether a job may run at once and asks for nothing that other jobs have to do with."""
    return not (
        job.delay_ms
        or job.key is not None
        or job.after
        or job.scheduled_at is not None
        or job.expires_in_ms is not None
        or job.expires_at is not None
        or job.order_key is not None
        or job.parent_job_id is not None
        or job.schedule_id is not None
        or job.keep_completed is not None
        or job.keep_failed is not None
    )


_plain_shape_of = attrgetter(
    "queue",
    "tenant_id",
    "type",
    "limit_key",
    "priority",
    "max_retries",
    "timeout_ms",
    "category",
    "retry_delay_ms",
    "backoff_multiplier",
    "trace_context",
    "created_by",
    "tags",
    "workspace_id",
    "metadata",
)


def _one(job: NewJob) -> tuple[Any, ...]:
    """A plain job as `enqueue_one.lua` takes it."""
    return (job.id, job.payload, *_plain_shape(*_plain_shape_of(job)))


@lru_cache(maxsize=1024)
def _plain_shape(
    queue: str,
    tenant_id: str,
    type_: str,
    limit_key: str | None,
    priority: int,
    max_retries: int,
    timeout_ms: int,
    *rest: Any,
) -> tuple[str, str, str, str, int, str]:
    """What plain jobs of one shape have in common."""
    _check_priority(priority)
    category, retry_delay_ms, backoff, trace, created_by, tags, workspace_id, metadata = rest
    doc = encode_doc(
        max_retries,
        timeout_ms,
        category,
        retry_delay_ms,
        backoff,
        trace,
        created_by,
        tags or None,
        workspace_id,
        None,
        None,
        metadata,
    )
    lane = encode_lane(queue, tenant_id, type_, limit_key)
    listed = f"{encode(type_).decode()}{encode(queue).decode()}\n{lane}"
    return doc, lane, listed, queue, priority, tenant_id


def _check_priority(priority: int) -> None:
    """Refuse a priority that has no digit in a member."""
    if not 1 <= priority <= 10:
        raise InvalidOption("priority", priority, "a whole number from 1 to 10")


def as_arguments(jobs: Sequence[NewJob]) -> list[Any]:
    """Jobs as `inserts.lua` takes them: shapes and their runs, then id and payload of each."""
    numbers: dict[tuple[Any, ...], int] = {}
    shapes: list[dict[str, Any]] = []
    runs: list[list[int]] = []
    arguments: list[Any] = [""]
    last: tuple[Any, ...] = ()
    for job in jobs:
        fields = _shape_of(job)
        if fields == last:
            runs[-1][1] += 1
        else:
            if fields not in numbers:
                shapes.append(_shape(job))
                numbers[fields] = len(shapes)
            runs.append([numbers[fields], 1])
            last = fields
        arguments += (job.id, job.payload)
    arguments[0] = encode({"shapes": shapes, "runs": runs})
    return arguments


def enqueued(jobs: Sequence[NewJob], answer: Any) -> list[Enqueued]:
    """What a script that inserted jobs answered."""
    if answer == 1:
        return [Enqueued(job.id, True) for job in jobs]
    return [Enqueued(job_id.decode(), created == 1) for job_id, created in answer]


def _shape(job: NewJob) -> dict[str, Any]:
    _check_priority(job.priority)
    scope = None if job.key is None else job.key_scope or KeyScope.UNTIL_DONE
    shape: dict[str, Any] = {
        "lane": encode_lane(job.queue, job.tenant_id, job.type, job.limit_key),
        "doc": _doc(job, scope),
        "priority": job.priority,
        "delay_ms": job.delay_ms,
        "scheduled_at": job.scheduled_at,
        "expires_in_ms": job.expires_in_ms,
        "expires_at": job.expires_at,
        "parent_job_id": job.parent_job_id,
        "schedule_id": job.schedule_id,
    }
    if job.key is not None:
        shape["key"] = encode((job.tenant_id, job.type, job.key)).decode()
        shape["key_scope"] = scope
        shape["key_window_ms"] = job.key_window_ms
    if job.order_key is not None:
        shape["line"] = encode((job.tenant_id, job.order_key)).decode()
    if job.keep_completed is not None or job.keep_failed is not None:
        shape["keep"] = encode((job.keep_completed, job.keep_failed)).decode()
    if job.after:
        shape["after"] = edges_as_rows(job.after)
    return shape


def _doc(job: NewJob, scope: KeyScope | None) -> str:
    return encode_doc(
        job.max_retries,
        job.timeout_ms,
        job.category,
        job.retry_delay_ms,
        job.backoff_multiplier,
        job.trace_context,
        job.created_by,
        job.tags or None,
        job.workspace_id,
        job.parent_job_id,
        job.schedule_id,
        job.metadata,
        job.key,
        scope,
        job.order_key,
        job.keep_completed,
        job.keep_failed,
    )
