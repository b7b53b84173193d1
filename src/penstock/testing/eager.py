"""Eager mode: an enqueue runs its handler at once, here, and nothing is stored."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, Unpack

import msgspec

from penstock.app.admission import How
from penstock.app.flow import Batch, FlowHandle, StepStatus
from penstock.app.handle import JobHandle
from penstock.app.job_type import Prepared
from penstock.app.penstock import Penstock
from penstock.model.dependency import EdgeKind, Outcome, decide, with_inputs
from penstock.model.errors import JobCancelled, JobFailed, ParentNotFound
from penstock.model.failure import Failure, orphaned
from penstock.model.job import Lease, NewJob
from penstock.model.outcome import Buried, Cancelled, Completed, Failed, Settlement, Snoozed
from penstock.model.states import Status
from penstock.store.contract import Report
from penstock.testing.local import in_this_process
from penstock.worker.execution import Executor
from penstock.worker.reports import Reports
from penstock.worker.running import Running

R = TypeVar("R")


@contextmanager
def eager(app: Penstock) -> Generator[None, None, None]:
    """`with eager(app): job = await send.enqueue("a@example.com")` has run it when it returns.

    Arguments and results are encoded and decoded as a store would, hooks and middleware run, and
    children run too. Nothing is retried and nothing waits: delays, times and keys are ignored. A
    flow runs in the order written: results are passed on and conditions obeyed.
    """
    ended: dict[str, Ended] = {}

    async def run_many(
        prepared: Sequence[Any],
        **_: Unpack[How],  # nothing is written: nothing to join, and no queue to wait for
    ) -> list[Any]:
        batch = Batch(prepared)
        handles = [await _run_after(app, call, ended) for call in batch.calls]
        return batch.handles(app, handles, EagerFlowHandle)

    async def run_one(prepared: Any, **_: Unpack[How]) -> Any:
        return (await run_many([prepared]))[0]

    # The instance's own attributes hide the methods of its class.
    hiding = {"enqueue": run_one, "enqueue_many": run_many, "enqueue_now": lambda *_: None}
    app.__dict__ |= hiding
    try:
        yield
    finally:
        for name in hiding:
            del app.__dict__[name]


class Ended(NamedTuple):
    """How a job ended: with a result, or with an error."""

    status: Status
    result: str | None
    error: str | None


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

    @property
    def ended(self) -> "Ended":
        """How it ended, as a store would say."""
        match self._settlement:
            case Completed(result=text):
                return Ended(Status.COMPLETED, text, None)
            case Cancelled(reason=reason):
                return Ended(Status.CANCELLED, None, reason)
            case Buried(failure=failure) | Failed(failure=failure):
                return Ended(Status.DEAD_LETTER, None, failure.message)
            case Snoozed(reason=reason):
                return Ended(Status.PENDING, None, reason)
            case _:
                return Ended(Status.IN_PROGRESS, None, "the handler was stopped")

    async def result(self, timeout: float | None = None) -> R:
        """The value; raises JobFailed or JobCancelled."""
        status, text, error = self.ended
        if status is Status.CANCELLED:
            raise JobCancelled(self.id, error)
        if status is not Status.COMPLETED:
            raise JobFailed(self.id, status, error)
        assert self._type is not None
        return self._type.decode_result(text)


class EagerFlowHandle(FlowHandle[R]):
    """The handle of a flow that has already run."""

    __slots__ = ()

    async def values(self, timeout: float | None = None) -> dict[str, Any]:
        """The results of its ends; raises JobFailed or JobCancelled, naming the step."""
        found: dict[str, Any] = {}
        for handle in self.ends:
            try:
                found[handle.id] = await handle.result(timeout)
            except JobFailed as error:
                raise await self.failure(handle.id) from error
        return found

    async def statuses(self) -> list[StepStatus]:
        """How its jobs ended."""
        return [
            StepStatus(job.ended.status, job.ended.error)
            for job in self.jobs
            if isinstance(job, EagerHandle)
        ]


class _Heard(Reports):
    """Keeps what a handler says instead of writing it."""

    def __init__(self, app: Penstock) -> None:
        super().__init__(app, "eager")
        self.heard: list[Report] = []

    async def write(self, reports: Sequence[Report]) -> None:
        """Keep reports."""
        self.heard += reports


async def _run_after(
    app: Penstock, call: Prepared[Any], ended: dict[str, Ended]
) -> EagerHandle[Any]:
    """Run a call if its parents let it, with their results."""
    handle = await _started(app, call, ended)
    ended[handle.id] = handle.ended
    return handle


async def _started(
    app: Penstock, call: Prepared[Any], ended: Mapping[str, Ended]
) -> EagerHandle[Any]:
    inputs: list[tuple[str, int | None, str | None]] = []
    for edge in call.job.after:
        parent = ended.get(edge.parent_id)
        if parent is None:
            raise ParentNotFound(edge.parent_id)
        outcome = decide(edge, parent.status, parent.result)
        if outcome is not Outcome.SATISFIED:
            failure = orphaned(edge, outcome, parent.status)
            return EagerHandle(app, call, _not_run(call.job, outcome, failure), [])
        if edge.kind is EdgeKind.DATA and edge.argument is not None:
            inputs.append((edge.argument, edge.position, parent.result))
    payload = with_inputs(call.job.payload, inputs)
    job = msgspec.structs.replace(call.job, payload=payload)
    return await _run(app, Prepared(call.type, job))


def _not_run(job: NewJob, outcome: Outcome, failure: Failure) -> Settlement:
    """The end of a job whose parent did not let it run."""
    facts: dict[str, Any] = {"id": job.id, "fence": 0, "type": job.type, "queue": job.queue}
    if outcome is Outcome.DEAD:
        return Buried(**facts, started_at=0, failure=failure)
    return Cancelled(**facts, started_at=0, reason=failure.message)


async def _run(app: Penstock, prepared: Prepared[R]) -> EagerHandle[R]:
    reports = _Heard(app)
    executor = Executor(app, reports, processes=0)
    lease = _lease(prepared.job, app.store.clock.now())
    try:
        settlement = await executor.run(Running(lease, in_this_process(prepared.type)))
        await reports.flush()
    finally:
        await executor.close()
    return EagerHandle(app, prepared, settlement, reports.heard)


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
        limit_key=job.limit_key,
    )
