"""Eager mode: an enqueue runs its handler at once, here, and nothing is stored."""

import copy
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from penstock.client.app import Penstock
from penstock.client.handle import JobHandle
from penstock.client.job_type import JobType, Prepared
from penstock.model.errors import JobCancelled, JobFailed
from penstock.model.job import Lease, NewJob
from penstock.model.settlement import Buried, Cancelled, Completed, Failed, Settlement, Snoozed
from penstock.store.contract import Report
from penstock.worker.execution import Executor
from penstock.worker.reports import Reports
from penstock.worker.running import Running

R = TypeVar("R")


@contextmanager
def eager(app: Penstock) -> Generator[None, None, None]:
    """`with eager(app): job = await send.enqueue("a@example.com")` has run it when it returns.

    Arguments and results are encoded and decoded as a store would, hooks and middleware run, and
    children run too. Nothing is retried and nothing waits: delays, times and keys are ignored.
    """

    async def run_many(
        prepared: Sequence[Prepared[Any]],
        *,
        connection: object | None = None,  # noqa: ARG001 - nothing is written that could join it
    ) -> list[JobHandle[Any]]:
        return [await _run(app, call) for call in prepared]

    # The instance's own attribute hides the method of its class.
    app.__dict__["enqueue_many"] = run_many
    try:
        yield
    finally:
        del app.__dict__["enqueue_many"]


class EagerHandle(JobHandle[R]):
    """The handle of a job that has already run; `reports` is what it said."""

    __slots__ = ("_settlement", "reports")

    def __init__(
        self,
        app: Penstock,
        prepared: Prepared[R],
        settlement: Settlement | None,
        reports: list[Report],
    ) -> None:
        super().__init__(app, prepared.job.id, prepared.type, created=True)
        self._settlement = settlement
        self.reports = reports

    async def result(self, timeout: float | None = None) -> R:
        """The value; raises JobFailed or JobCancelled."""
        match self._settlement:
            case Completed(result=text):
                assert self._type is not None
                return self._type.decode_result(text)
            case Cancelled(reason=reason):
                raise JobCancelled(self.id, reason)
            case Buried(failure=failure) | Failed(failure=failure):
                raise JobFailed(self.id, "dead_letter", failure.message)
            case Snoozed(reason=reason):
                raise JobFailed(self.id, "pending", reason)
            case _:
                raise JobFailed(self.id, "in_progress", "the handler was stopped")


class _Heard(Reports):
    """Keeps what a handler says instead of writing it."""

    def __init__(self, app: Penstock) -> None:
        super().__init__(app, "eager")
        self.heard: list[Report] = []

    async def write(self, reports: list[Report]) -> None:
        """Keep reports."""
        self.heard += reports


async def _run(app: Penstock, prepared: Prepared[R]) -> EagerHandle[R]:
    reports = _Heard(app)
    executor = Executor(app, reports, processes=0)
    lease = _lease(prepared.job, app.store.clock.now())
    try:
        settlement = await executor.run(Running(lease, _here(prepared.type)))
        await reports.flush()
    finally:
        await executor.close()
    return EagerHandle(app, prepared, settlement, reports.heard)


def _here(type_: JobType[..., ..., Any]) -> JobType[..., ..., Any]:
    """The same type, run in this process whatever it asks for."""
    if type_.run_in != "process":
        return type_
    local = copy.copy(type_)
    local.run_in = "loop" if type_.is_async else "thread"
    return local


def _lease(job: NewJob, now: int) -> Lease:
    return Lease(
        id=job.id,
        fence=1,
        type=job.type,
        queue=job.queue,
        priority=job.priority,
        payload=job.payload,
        attempts=0,
        snoozes=0,
        rescues=0,
        max_retries=0,
        retry_delay_ms=job.retry_delay_ms,
        backoff_multiplier=job.backoff_multiplier,
        timeout_ms=job.timeout_ms,
        expires_at=None,
        checkpoint=None,
        tenant_id=job.tenant_id,
        workspace_id=job.workspace_id,
        parent_job_id=job.parent_job_id,
        key=job.key,
        metadata=job.metadata,
        trace_context=job.trace_context,
        created_at=now,
        queued_at=now,
        started_at=now,
    )
