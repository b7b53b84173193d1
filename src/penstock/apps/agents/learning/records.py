"""What is learned from sessions, as programs, pages and the API see it."""

from typing import Any

import msgspec
from msgspec import Struct

from penstock.model.not_found import NotFound

SUCCESS = "success"
FAILURE = "failure"
PARTIAL = "partial"
UNKNOWN = "unknown"
VERDICTS = (SUCCESS, FAILURE, PARTIAL, UNKNOWN)

WORKFLOW = "workflow"
ANTI_PATTERN = "anti_pattern"

MATCH = 0.75
"""The least cosine at which a pattern counts for a task."""
USES = 10
LEAST_SUCCESS = 0.3
"""A pattern followed more than `USES` times that helped less often than this is given up."""


class Metrics(Struct, frozen=True, kw_only=True):
    """The figures that a verdict rests on; `credited` are the patterns that it speaks for."""

    turns: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    duration_ms: int = 0
    feedback: list[str] = []
    skills: dict[str, list[int]] = {}
    """Of each skill how often it succeeded, and how often it was used with a known end."""
    credited: list[str] = []


class Trajectory(Struct, frozen=True, kw_only=True):
    """A task of a session: what was asked, with which skills it was done, and how it ended."""

    id: str
    tenant_id: str
    workspace_id: str | None
    user_id: str | None
    session_id: str
    turn_ids: list[int]
    skill_ids: list[str]
    content: str
    started_at: int
    ended_at: int
    verdict: str
    verdict_reason: str
    metrics: Metrics
    embedding_id: str | None
    created_at: int


class Pattern(Struct, frozen=True, kw_only=True):
    """What tasks of a kind have in common: a workflow that works, or what fails."""

    id: str
    tenant_id: str
    pattern_type: str
    content: str
    embedding_id: str | None
    exemplar_trajectory_ids: list[str]
    confidence: float
    usage_count: int
    success_count: int
    is_active: bool
    superseded_by: str | None
    metadata: dict[str, Any]
    created_at: int
    updated_at: int


class Match(Struct, frozen=True, kw_only=True):
    """A pattern that fits a task, and how well: the cosine of the two."""

    pattern: Pattern
    score: float


class ClassifierRow(Struct, frozen=True, kw_only=True):
    """A classifier that was trained: when, by which job, and how well it did."""

    id: str
    tenant_id: str
    parent_id: str | None
    model: str
    consolidated: bool
    figures: dict[str, Any]
    is_active: bool
    job_id: str
    created_at: int


class Prediction(Struct, frozen=True, kw_only=True):
    """How a task is likely to end, and the probability of each verdict."""

    verdict: str
    probabilities: dict[str, float]
    classifier_id: str


class TrajectoryNotFound(NotFound):
    """An id that no trajectory has."""

    def __init__(self, trajectory_id: str) -> None:
        self.trajectory_id = trajectory_id
        super().__init__(f"There is no trajectory {trajectory_id!r}.")


class PatternNotFound(NotFound):
    """An id that no pattern has."""

    def __init__(self, pattern_id: str) -> None:
        self.pattern_id = pattern_id
        super().__init__(f"There is no pattern {pattern_id!r}.")


def trajectory_of(row: tuple[Any, ...]) -> Trajectory:
    """A row of the table as a record."""
    known: dict[str, Any] = dict(zip(Trajectory.__struct_fields__, row, strict=True))
    for name in ("turn_ids", "skill_ids"):
        known[name] = msgspec.json.decode(known[name])
    known["metrics"] = msgspec.json.decode(known["metrics"], type=Metrics)
    return Trajectory(**known)


def pattern_of(row: tuple[Any, ...]) -> Pattern:
    """A row of the table as a record."""
    known: dict[str, Any] = dict(zip(Pattern.__struct_fields__, row, strict=True))
    for name in ("exemplar_trajectory_ids", "metadata"):
        known[name] = msgspec.json.decode(known[name])
    known["is_active"] = bool(known["is_active"])
    return Pattern(**known)


def classifier_of(row: tuple[Any, ...]) -> ClassifierRow:
    """A row of the table as a record."""
    known: dict[str, Any] = dict(zip(ClassifierRow.__struct_fields__, row, strict=True))
    for name in ("consolidated", "is_active"):
        known[name] = bool(known[name])
    known["figures"] = msgspec.json.decode(known["figures"])
    return ClassifierRow(**known)
