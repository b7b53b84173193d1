"""Pauses: rows that hold work back until somebody takes them away."""

from enum import StrEnum

from msgspec import Struct


class PauseScope(StrEnum):
    """What is paused."""

    JOB = "job"
    QUEUE = "queue"
    TYPE = "type"
    TENANT = "tenant"


class Pause(Struct, frozen=True, kw_only=True):
    """Who paused what, when and why."""

    scope: PauseScope
    name: str
    reason: str | None
    paused_by: str | None
    created_at: int
