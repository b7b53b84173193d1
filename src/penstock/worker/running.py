"""The executions a worker has under way, and why one of them may be stopped early."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto

from penstock.client.context import Context
from penstock.client.job_type import JobType
from penstock.model.job import Lease
from penstock.model.settlement import Settlement
from penstock.worker.reports import JobReporter


class StopReason(Enum):
    """Why an execution is stopped from outside."""

    TIMEOUT = auto()
    CANCEL = auto()
    SHUTDOWN = auto()
    LOST = auto()


class Running:
    """One lease in the hands of this worker, started or still prefetched."""

    __slots__ = (
        "began_at",
        "cancel_at",
        "context",
        "deadline",
        "interrupt",
        "lease",
        "reason",
        "reporter",
        "settlement",
        "started_at",
        "task",
        "type",
    )

    def __init__(self, lease: Lease, type_: "JobType[..., ..., object]") -> None:
        self.lease = lease
        self.type = type_
        self.context: Context | None = None
        self.reporter: JobReporter | None = None
        self.settlement: Settlement | None = None
        self.task: asyncio.Task[None] | None = None
        self.started_at = 0
        self.began_at = 0
        self.deadline: int | None = None
        self.cancel_at: int | None = None
        self.reason: StopReason | None = None
        self.interrupt: Callable[[], bool] | None = None

    def begin(self, now: int) -> None:
        """Count the handler's time from here."""
        self.began_at = now
        self.deadline = now + self.lease.timeout_ms

    def judged(self) -> None:
        """Forget what stopped the handler: from here on only its hooks can be stopped."""
        self.reason = self.cancel_at = None
        while self.task is not None and self.task.cancelling():
            self.task.uncancel()

    def stop(self, reason: StopReason) -> None:
        """End the execution as soon as its kind allows."""
        if self.reason is not None:
            return
        self.reason = reason
        interrupted = self.interrupt is not None and self.interrupt()
        if not interrupted and self.task is not None:
            self.task.cancel()

    def request_cancel(self, grace_until: int) -> None:
        """Ask the handler to stop; if it has not by then, it is stopped."""
        if self.settlement is not None:
            return
        if self.context is not None:
            self.context.request_stop()
        if self.cancel_at is None:
            self.cancel_at = grace_until
