"""Questions about jobs. Answers may lag a write by the length of one transaction."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct

from penstock.model.job import Job
from penstock.model.states import Status


class Execution(Struct, frozen=True, kw_only=True):
    """One execution of a job; `status` is how it ended (running while it has not)."""

    job_id: str
    fence: int
    status: str
    started_at: int
    ended_at: int | None
    duration_ms: int | None
    wait_ms: int | None
    result: str | None
    error: str | None
    error_class: str | None
    error_code: str | None
    error_stack: str | None
    worker: str | None
    node: str | None
    memory_kb: int | None
    cpu_ms: int | None


class LogLine(Struct, frozen=True):
    """A line a handler wrote about its job."""

    at: int
    fence: int
    level: str
    message: str


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs to list, newest first; `before` is the id to continue after."""

    status: Status | None = None
    type: str | None = None
    queue: str | None = None
    tenant_id: str | None = None
    tag: str | None = None
    parent_job_id: str | None = None
    before: str | None = None
    limit: int = 50


class JobReader(Protocol):
    """Look things up."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs that exist, in the order asked."""
        ...

    async def find(self, where: JobFilter) -> list[Job]:
        """A page of jobs, newest first."""
        ...

    async def executions(self, job_id: str) -> list[Execution]:
        """A job's executions, oldest first, the running one included."""
        ...

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """The lines its handler kept, oldest first."""
        ...

    def watch(self, ids: Sequence[str]) -> AsyncIterator[Job]:
        """Each job now and whenever it changes, until all of them are terminal."""
        ...
