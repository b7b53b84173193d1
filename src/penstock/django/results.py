"""A job as Django's tasks see it: status, times, errors, priority."""

import builtins
import re
from collections.abc import Sequence
from copy import copy
from datetime import UTC, datetime
from traceback import format_exception
from typing import Any

import msgspec
from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.timezone import make_aware, make_naive

from penstock.django.framework import Task, TaskError, TaskResult, TaskResultStatus
from penstock.model.errors import JobCancelled, JobFailed
from penstock.model.ids import id_time_ms
from penstock.model.job import DEFAULT_PRIORITY, Job, Lease
from penstock.model.redact import redact
from penstock.model.states import Status
from penstock.store.contract import Execution

STATUSES = {
    Status.IN_PROGRESS: TaskResultStatus.RUNNING,
    Status.COMPLETED: TaskResultStatus.SUCCESSFUL,
    Status.DEAD_LETTER: TaskResultStatus.FAILED,
    Status.CANCELLED: TaskResultStatus.FAILED,
}
"""All others wait to be run, or to be run again: they are ready."""


class Note(msgspec.Struct, omit_defaults=True):
    """What a job's own columns cannot tell of its task, kept with its metadata."""

    priority: int = 0
    run_after: datetime | None = None


class _Metadata(msgspec.Struct):
    django: Note = msgspec.field(default_factory=Note)


class _Payload(msgspec.Struct):
    args: list[Any]
    kwargs: dict[str, Any]


def priority_of(priority: int) -> int:
    """Turn -100 … 100, the highest first, into 10 … 1, where 1 is first and 0 becomes 5."""
    if priority > 0:
        return DEFAULT_PRIORITY - (priority + 24) // 25
    return DEFAULT_PRIORITY + (19 - priority) // 20


def moment(ms: int | None) -> datetime | None:
    """Return a time as this project has it: aware if `USE_TZ`, else in its own zone."""
    if ms is None:
        return None
    aware = datetime.fromtimestamp(ms / 1000, UTC)
    return aware if settings.USE_TZ else make_naive(aware)


def due(task: Any) -> datetime | None:
    """Return when a task may start, as an aware time."""
    after: datetime | None = task.run_after
    return after if after is None or after.tzinfo is not None else make_aware(after)


def note_of(task: Any) -> dict[str, Any] | None:
    """Return the metadata of a job that runs a task."""
    note = Note(priority=task.priority, run_after=task.run_after)
    return {"django": msgspec.to_builtins(note)} if note != Note() else None


def new_result(task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result of a task that is about to be enqueued; arguments are refused here."""
    try:
        return TaskResult(
            task=task,
            id="",
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=task.backend,
            errors=[],
            worker_ids=[],
        )
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"Task {task.module_path!r} was given an argument that JSON cannot hold ({error}); "
            "pass a primary key in place of a model, and text in place of a date."
        ) from error


def find_task(job: Job, alias: str) -> Any | None:
    """Return the task that a job runs, as it was enqueued; None if it runs none."""
    try:
        task = import_string(job.type)
    except ImportError:
        return None
    return as_enqueued(task, job, alias) if isinstance(task, Task) else None


def as_enqueued(task: Any, job: Job | Lease, alias: str) -> Any:
    """Return a task with what `using` had changed when it was enqueued.

    `using` itself would check that against the settings, which may name other queues by now.
    """
    note = msgspec.json.decode(job.metadata or "{}", type=_Metadata).django
    enqueued = copy(task)
    for name, value in {
        "priority": note.priority,
        "run_after": note.run_after,
        "queue_name": job.queue,
        "backend": alias,
    }.items():
        object.__setattr__(enqueued, name, value)
    return enqueued


def first_result(lease: Lease, now: datetime, worker: str, task: Any) -> Any:
    """Return the result of a task that starts for the first time, without asking the store."""
    given = msgspec.json.decode(lease.payload, type=_Payload)
    started = moment(round(now.timestamp() * 1000))
    result = new_result(as_enqueued(task, lease, task.backend), given.args, given.kwargs)
    for name, value in {
        "id": lease.id,
        "status": TaskResultStatus.RUNNING,
        "enqueued_at": enqueued_at(lease.id),
        "started_at": started,
        "last_attempted_at": started,
        "worker_ids": [worker],
    }.items():
        object.__setattr__(result, name, value)
    return result


def result_of(job: Job, executions: Sequence[Execution], task: Any, alias: str) -> Any:
    """Return the result of a task from the job that runs it."""
    given = msgspec.json.decode(job.payload, type=_Payload)
    status = STATUSES.get(job.status, TaskResultStatus.READY)
    ended = job.completed_at or job.failed_at or job.updated_at
    result = TaskResult(
        task=task,
        id=job.id,
        status=status,
        enqueued_at=enqueued_at(job.id),
        started_at=moment(executions[0].started_at if executions else None),
        finished_at=moment(ended if job.status.terminal else None),
        last_attempted_at=moment(executions[-1].started_at if executions else None),
        args=given.args,
        kwargs=given.kwargs,
        backend=alias,
        errors=errors_of(job, executions),
        worker_ids=[each.worker or "" for each in executions],
    )
    if status == TaskResultStatus.SUCCESSFUL:
        object.__setattr__(result, "_return_value", msgspec.json.decode(job.result or "null"))
    return result


def enqueued_at(job_id: str) -> datetime | None:
    """Return when an id was made: the same before a commit, after it and in another process."""
    return moment(id_time_ms(job_id))


def errors_of(job: Job, executions: Sequence[Execution]) -> list[Any]:
    """Return what went wrong, an error for each execution that failed."""
    errors = [_error(each) for each in executions if each.error_code is not None]
    kind = {Status.CANCELLED: JobCancelled, Status.DEAD_LETTER: JobFailed}.get(job.status)
    if kind is not None and (not errors or kind is JobCancelled):
        errors.append(TaskError(exception_class_path=_path(kind), traceback=f"{job.error}\n"))
    return errors


def error_of(error: BaseException) -> Any:
    """Return an exception as an error of a task."""
    trace = redact("".join(format_exception(error)))
    return TaskError(exception_class_path=_path(type(error)), traceback=trace)


def _error(execution: Execution) -> Any:
    code, stack = str(execution.error_code), execution.error_stack
    # The last of them: those above it are causes.
    modules = re.findall(rf"^[ |]*((?:\w+\.)*){re.escape(code)}(?::|$)", stack or "", re.M)
    if modules and modules[-1]:
        name = f"{modules[-1]}{code}"
    elif hasattr(builtins, code):
        name = f"builtins.{code}"
    else:
        name = _path(JobFailed)  # no exception of the task's, such as an expiry
    trace = stack or f"{code}: {execution.error}\n"
    return TaskError(exception_class_path=name, traceback=trace)


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
