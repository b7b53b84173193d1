"""From what the scripts answer to what readers see."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from msgspec.json import Decoder, decode

from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import Dependency, Execution, LogLine
from penstock.store.contract.reader import node_of
from penstock.store.redis.keys import AS_IN_JOB, Ran, decode_lane, readable_doc
from penstock.store.redis.scripts import Scripts


async def page(scripts: Scripts, name: str, *asked: Any, limit: int) -> list[Any]:
    """What a script finds, called again from where it got to until that is enough, or all."""
    found: list[Any] = []
    reached = b""
    while len(found) < limit:
        reached, some = await scripts.call(name, *asked, reached, limit - len(found))
        found += some
        if not reached:
            break
    return found


Picture = Sequence[Any]

_ran: Decoder[Ran] = Decoder(Ran)
_as_in_job = attrgetter(*AS_IN_JOB)
_STATUSES = {status.value.encode(): status for status in Status}


def job(picture: Picture) -> Job:
    """A job from its picture, see `lua/parts/pictures.lua`."""
    (
        job_id, lease_until, status, lane, doc_text, priority, payload, result, error,
        error_details, attempts, snoozes, rescues, fence, timeout_ms, scheduled_at, expires_at,
        lease_owner, cancel_requested_at, progress_percent, progress_message, checkpoint,
        waiting_on, created_at, updated_at, queued_at, started_at, completed_at, failed_at,
        progress,
    ) = picture  # fmt: skip
    doc = readable_doc(doc_text)
    queue, tenant_id, type_, limit_key = decode_lane(lane)
    made = int(created_at)
    moments = [number(at) for at in (queued_at, started_at, completed_at, failed_at)]
    known = _STATUSES[status]
    kept = text(result)
    return Job(
        id=job_id.decode(),
        type=type_,
        queue=queue,
        status=known,
        priority=int(priority or 5),
        payload=payload.decode("utf-8", "replace"),
        result="null" if kept is None and known is Status.COMPLETED else kept,
        error=text(error),
        error_details=text(error_details),
        attempts=int(attempts or 0),
        snoozes=int(snoozes or 0),
        rescues=int(rescues or 0),
        fence=int(fence or 0),
        timeout_ms=int(timeout_ms) if timeout_ms else doc.timeout_ms,
        scheduled_at=int(scheduled_at) if scheduled_at else made,
        expires_at=number(expires_at),
        lease_owner=text(lease_owner),
        lease_until=number(lease_until),
        cancel_requested_at=number(cancel_requested_at),
        progress_percent=float(progress_percent) if progress_percent else None,
        progress_message=text(progress_message),
        progress=text(progress),
        checkpoint=text(checkpoint),
        tenant_id=tenant_id,
        waiting_on=int(waiting_on or 0),
        limit_key=limit_key or None,
        tags=doc.tags or (),
        created_at=made,
        updated_at=int(updated_at) if updated_at else max(made, *(at or 0 for at in moments)),
        queued_at=moments[0],
        started_at=moments[1],
        completed_at=moments[2],
        failed_at=moments[3],
        **dict(zip(AS_IN_JOB, _as_in_job(doc), strict=True)),
    )


def executions(job_id: str, fields: Sequence[bytes], now: int) -> list[Execution]:
    """A job's executions from its whole hash, oldest first, the running one included."""
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    kept = text(found.get(b"result"))
    fences = sorted(int(name[1:]) for name in found if name[:1] == b"x" and name[1:].isdigit())
    ended = [_ended(job_id, fence, found[b"x%d" % fence], kept) for fence in fences]
    started_at = number(found.get(b"started_at"))
    if found.get(b"status") != b"in_progress" or started_at is None:
        return ended
    owner = text(found.get(b"lease_owner"))
    queued_at = number(found.get(b"queued_at")) or started_at
    fence = int(found.get(b"fence") or 0)
    return [*ended, Execution.running(job_id, fence, started_at, owner, queued_at, now=now)]


def log_line(line: bytes) -> LogLine:
    """A line a handler kept."""
    return LogLine(*decode(line))


def dependency(row: Sequence[Any]) -> Dependency:
    """An edge from its row, see `lua/parts/linked.lua`."""
    child, parent, kind, argument, outcome, closed_at, terms, *about = row
    parent_type, parent_status, child_type, child_status = (text(value) for value in about)
    on_failure, on_requeue, position, condition = decode(terms)
    edge = Edge(
        parent_id=parent.decode(),
        kind=EdgeKind(kind.decode()),
        condition=condition,
        argument=text(argument),
        position=position,
        on_failure=OnFailure(on_failure),
        on_requeue=OnRequeue(on_requeue),
    )
    return Dependency(
        child_id=child.decode(),
        edge=edge,
        parent_type=parent_type,
        parent_status=None if parent_status is None else Status(parent_status),
        child_type=child_type,
        child_status=None if child_status is None else Status(child_status),
        outcome=None if outcome is None else Outcome(outcome.decode()),
        closed_at=number(closed_at),
    )


def number(value: bytes | None) -> int | None:
    """A whole number, or none; an empty field is the same as a missing one."""
    return int(value) if value else None


def text(value: bytes | None) -> str | None:
    """Text, or none; one that is not UTF-8 must not end a whole query."""
    return value.decode("utf-8", "replace") if value else None


def _ended(job_id: str, fence: int, stored: bytes, result: str | None) -> Execution:
    ran = _ran.decode(stored)
    completed = ran.status == Status.COMPLETED
    return Execution(
        job_id=job_id,
        fence=fence,
        status=ran.status,
        started_at=ran.started_at,
        ended_at=ran.ended_at,
        duration_ms=ran.duration_ms,
        wait_ms=ran.wait_ms,
        result=(result or "null") if completed else None,
        error=ran.error,
        error_class=ran.error_class,
        error_code=ran.error_code,
        error_stack=ran.error_stack,
        worker=ran.worker,
        node=node_of(ran.worker),
        memory_kb=ran.memory_kb,
        cpu_ms=ran.cpu_ms,
    )
