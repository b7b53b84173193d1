"""Pauses: rows that hold work back until somebody takes them away."""

from enum import StrEnum

from msgspec import Struct

from penstock.model.job import Job


class PauseScope(StrEnum):
    """What is paused."""

    JOB = "job"
    QUEUE = "queue"
    TYPE = "type"
    TENANT = "tenant"


PAUSABLE = (PauseScope.QUEUE, PauseScope.TYPE, PauseScope.TENANT)
"""What holds back jobs together; a single job is paused by its id."""


class Pause(Struct, frozen=True, kw_only=True):
    """Who paused what, when and why."""

    scope: PauseScope
    name: str
    reason: str | None
    paused_by: str | None
    created_at: int


def pausable(job: Job) -> dict[PauseScope, str]:
    """All that a pause on a job may be about."""
    return {
        PauseScope.JOB: job.id,
        PauseScope.QUEUE: job.queue,
        PauseScope.TYPE: job.type,
        PauseScope.TENANT: job.tenant_id,
    }
