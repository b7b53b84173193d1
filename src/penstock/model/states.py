"""The one table of a job's states: SQL guards, docs and property tests are made from it."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    FAILED = "failed"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DEAD_LETTER = "dead_letter"

    @property
    def terminal(self) -> bool:
        """Whether the job has ended; only an operator's requeue leaves such a state."""
        return self in TERMINAL


class Transition(NamedTuple):
    """One allowed step, named by the action that takes it."""

    source: Status
    action: str
    target: Status


TERMINAL = frozenset({Status.COMPLETED, Status.CANCELLED, Status.DEAD_LETTER})

TRANSITIONS: tuple[Transition, ...] = (
    Transition(Status.PENDING, "stage", Status.QUEUED),
    Transition(Status.PENDING, "pause", Status.PAUSED),
    Transition(Status.PENDING, "cancel", Status.CANCELLED),
    Transition(Status.PENDING, "expire", Status.DEAD_LETTER),
    Transition(Status.PENDING, "orphan", Status.DEAD_LETTER),
    Transition(Status.QUEUED, "claim", Status.IN_PROGRESS),
    Transition(Status.QUEUED, "pause", Status.PAUSED),
    Transition(Status.QUEUED, "cancel", Status.CANCELLED),
    Transition(Status.QUEUED, "expire", Status.DEAD_LETTER),
    Transition(Status.IN_PROGRESS, "complete", Status.COMPLETED),
    Transition(Status.IN_PROGRESS, "fail", Status.FAILED),
    Transition(Status.IN_PROGRESS, "stop", Status.CANCELLED),
    Transition(Status.IN_PROGRESS, "bury", Status.DEAD_LETTER),
    Transition(Status.IN_PROGRESS, "snooze", Status.PENDING),
    Transition(Status.IN_PROGRESS, "rescue", Status.QUEUED),
    Transition(Status.IN_PROGRESS, "hand_back", Status.QUEUED),
    Transition(Status.FAILED, "stage", Status.QUEUED),
    Transition(Status.FAILED, "pause", Status.PAUSED),
    Transition(Status.FAILED, "cancel", Status.CANCELLED),
    Transition(Status.FAILED, "expire", Status.DEAD_LETTER),
    Transition(Status.PAUSED, "resume", Status.PENDING),
    Transition(Status.PAUSED, "cancel", Status.CANCELLED),
    Transition(Status.CANCELLED, "requeue", Status.PENDING),
    Transition(Status.DEAD_LETTER, "requeue", Status.PENDING),
)

ALLOWED = frozenset((step.source, step.target) for step in TRANSITIONS)


def sources(action: str) -> tuple[Status, ...]:
    """The states an action may start from: `sources("requeue")` is cancelled and dead_letter."""
    found = tuple(step.source for step in TRANSITIONS if step.action == action)
    if not found:
        raise KeyError(f"no transition is named {action!r}")
    return found
