"""Reading jobs, and what hangs on them, as records to be moved elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import DecodeError
from msgspec.json import Decoder, decode

from penstock.model.errors import StoreError
from penstock.model.rank import rank
from penstock.model.states import Status
from penstock.store.contract import COLUMNS, Page, Part, Row
from penstock.store.contract.transfer import AT_ONCE, PAGE_BYTES, size_of
from penstock.store.redis.courier import Courier
from penstock.store.redis.dead import RedisDeadLetters
from penstock.store.redis.keys import Ran, decode_doc, decode_lane
from penstock.store.redis.pictures import number, text

Fields = dict[bytes, bytes]

_ran: Decoder[Ran] = Decoder(Ran)
_COUNTS = ("attempts", "snoozes", "rescues", "returns", "fence", "waiting_on")
_TEXTS = (
    "error", "error_details", "lease_owner", "cancel_reason", "progress_message", "checkpoint",
)  # fmt: skip
_MOMENTS = (
    "expires_at", "cancel_requested_at", "queued_at", "started_at", "completed_at", "failed_at",
)  # fmt: skip
_FROM_DOC = (
    "category", "max_retries", "retry_delay_ms", "backoff_multiplier", "workspace_id",
    "created_by", "parent_job_id", "schedule_id", "key", "key_scope", "order_key", "metadata",
    "trace_context",
)  # fmt: skip


Reading = Callable[[Courier, Sequence[str]], Awaitable[list[Row]]]


async def page_by_job(courier: Courier, part: Part, after: str | None, limit: int) -> Page:
    """Records that are kept with jobs or dead letters, in the order of those."""
    name = "dead" if part is Part.DEAD_LETTERS else "jobs"
    rows: list[Row] = []
    size = 0
    while True:
        ids, after = await _ids(courier, name, after, min(AT_ONCE, limit))
        read = await BY_JOB[part](courier, ids)
        rows += read
        size += size_of(read)
        if after is None or len(rows) >= limit or size >= PAGE_BYTES:
            return Page(rows, after)


async def _jobs(courier: Courier, ids: Sequence[str]) -> list[Row]:
    hashes = await _hashes(courier, "job", ids)
    left = await _leases_left(courier, ids, hashes)
    rows: list[Row] = []
    for job_id, found in zip(ids, hashes, strict=True):
        try:
            rows.append(_job(job_id, found, left.get(job_id)))
        except (DecodeError, KeyError, ValueError) as error:
            problem = (
                f"holds job {job_id}, whose document cannot be read ({error}); have a worker "
                f"dead-letter it, remove it with `penstock dead purge {job_id}`, and try again"
            )
            raise StoreError(courier.server.url, problem) from error
    return rows


async def _letters(courier: Courier, ids: Sequence[str]) -> list[Row]:
    reader = RedisDeadLetters(courier)
    found = await asyncio.gather(*(reader.get(job_id) for job_id in ids))
    names = COLUMNS[Part.DEAD_LETTERS]
    return [tuple(getattr(letter, name) for name in names) for letter in found if letter]


async def _executions(courier: Courier, ids: Sequence[str]) -> list[Row]:
    hashes = await _hashes(courier, "job", ids)
    return [
        _execution(job_id, int(name[1:]), found)
        for job_id, found in zip(ids, hashes, strict=True)
        for name in sorted(found, key=lambda name: (len(name), name))
        if name[:1] == b"x" and name[1:].isdigit()
    ]


async def _logs(courier: Courier, ids: Sequence[str]) -> list[Row]:
    found = await courier.call("read_all", "LRANGE", "logs:", *ids)
    rows: list[Row] = []
    for job_id, lines in zip(ids, found, strict=True):
        for line in lines:
            at, fence, level, message = decode(line)
            rows.append((job_id, fence, at, level, message))
    return rows


async def _dependencies(courier: Courier, ids: Sequence[str]) -> list[Row]:
    edges = await _hashes(courier, "edges", ids)
    waiting = [job_id for job_id, found in zip(ids, edges, strict=True) if found]
    inputs = dict(zip(waiting, await _hashes(courier, "inputs", waiting), strict=True))
    asked = (("HGET", f"{courier.prefix}job:{job_id}", "created_at") for job_id in waiting)
    made = dict(zip(waiting, await courier.ask(*asked), strict=True))
    return [
        _edge(job_id, field, value, inputs[job_id].get(field), int(made[job_id]))
        for job_id, found in zip(ids, edges, strict=True)
        for field, value in sorted(found.items())
    ]


BY_JOB: Mapping[Part, Reading] = MappingProxyType(
    {
        Part.JOBS: _jobs,
        Part.EXECUTIONS: _executions,
        Part.LOGS: _logs,
        Part.DEAD_LETTERS: _letters,
        Part.DEPENDENCIES: _dependencies,
    }
)
"""What is kept with each job, and read job by job."""


async def _ids(
    courier: Courier, name: str, after: str | None, limit: int
) -> tuple[list[str], str | None]:
    """Ids by their number, and that of the last one unless there are no more."""
    asked = ("ZRANGEBYSCORE", courier.prefix + name, f"({after or 0}", "+inf")
    [found] = await courier.ask((*asked, "WITHSCORES", "LIMIT", 0, limit))
    ids = [job_id.decode() for job_id in found[::2]]
    return ids, str(int(found[-1])) if len(ids) == limit else None


async def _hashes(courier: Courier, kind: str, ids: Sequence[str]) -> list[Fields]:
    found = await courier.call("read_all", "HGETALL", f"{kind}:", *ids)
    return [dict(zip(fields[::2], fields[1::2], strict=True)) for fields in found]


async def _leases_left(
    courier: Courier, ids: Sequence[str], hashes: Sequence[Fields]
) -> dict[str, int]:
    """How long the leases of running jobs still last, by the clock of leases."""
    leased = [
        (job_id, found.get(b"lease_owner", b"").decode())
        for job_id, found in zip(ids, hashes, strict=True)
        if found.get(b"status") == b"in_progress"
    ]
    asked = (("ZSCORE", f"{courier.prefix}leases:{owner}", job_id) for job_id, owner in leased)
    now, scores = await courier.look(*asked)
    told = courier.times()[1]
    monotonic = told if isinstance(told, int) else now
    return {
        job_id: int(float(score)) - monotonic
        for (job_id, _), score in zip(leased, scores, strict=True)
        if score is not None
    }


def _job(job_id: str, found: Fields, lease_left_ms: int | None) -> Row:
    doc = decode_doc(found[b"doc"])
    queue, tenant_id, type_, limit_key = decode_lane(found[b"lane"])
    status = found[b"status"].decode()
    made = int(found[b"created_at"])
    priority = number(found.get(b"priority")) or 5
    scheduled_at = number(found.get(b"scheduled_at")) or made
    result = text(found.get(b"result"))
    percent = found.get(b"progress_percent")
    row: dict[str, Any] = {
        "id": job_id,
        "type": type_,
        "queue": queue,
        "status": status,
        "priority": priority,
        "rank": rank(scheduled_at, priority),
        "payload": found.get(b"payload", b"").decode("utf-8", "replace"),
        "result": "null" if result is None and status == Status.COMPLETED else result,
        "timeout_ms": number(found.get(b"timeout_ms")) or doc.timeout_ms,
        "scheduled_at": scheduled_at,
        "lease_left_ms": lease_left_ms,
        "progress_percent": float(percent) if percent else None,
        "tenant_id": tenant_id,
        "limit_key": limit_key,
        "tags": list(doc.tags) if doc.tags else None,
        "created_at": made,
    }
    row |= {name: number(found.get(name.encode())) or 0 for name in _COUNTS}
    row |= {name: text(found.get(name.encode())) for name in _TEXTS}
    row |= {name: number(found.get(name.encode())) for name in _MOMENTS}
    row |= {name: getattr(doc, name) for name in _FROM_DOC}
    latest = max(made, *(row[name] or 0 for name in ("queued_at", "started_at", "completed_at")))
    row["updated_at"] = number(found.get(b"updated_at")) or latest
    if status == Status.COMPLETED:
        row["lease_owner"] = None
        if row["completed_at"] is None:
            _fill_in(row, found)
    return tuple(row[name] for name in COLUMNS[Part.JOBS])


def _fill_in(row: dict[str, Any], found: Fields) -> None:
    """What the last execution of a completed job tells of it."""
    last = found.get(b"x%d" % row["fence"])
    if last is not None:
        ran = _ran.decode(last)
        row["attempts"] += 1
        row["started_at"] = ran.started_at
        row["completed_at"] = row["updated_at"] = ran.ended_at


def _execution(job_id: str, fence: int, found: Fields) -> Row:
    ran = _ran.decode(found[b"x%d" % fence])
    completed = ran.status == Status.COMPLETED
    result = (text(found.get(b"result")) or "null") if completed else None
    return (
        job_id, fence, ran.status, ran.started_at, ran.ended_at, ran.wait_ms, ran.duration_ms,
        ran.cpu_ms, ran.memory_kb, ran.worker or None, ran.error_class, ran.error_code, ran.error,
        ran.error_stack, result,
    )  # fmt: skip


def _edge(child: str, field: bytes, value: bytes, result: bytes | None, made: int) -> Row:
    parent, kind, argument = field.decode().split("\n", 2)
    outcome, closed_at, terms = value.decode().split(" ", 2)
    on_failure, on_requeue, position, condition = decode(terms)
    is_open = outcome == "-"
    return (
        child, parent, kind, argument, position, condition, on_failure, on_requeue,
        None if is_open else outcome, text(result), made, None if is_open else int(closed_at),
    )  # fmt: skip
