"""The model's edges: who waits for whom, and what the end of a parent means."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.json import decode

from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.states import Status

CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    "result == 1": lambda result: result == 1,
    "result.n > 1": lambda result: isinstance(result, dict) and result["n"] > 1,
}
"""The conditions that are drawn, and what they mean."""

AGAINST = (Outcome.CANCELLED, Outcome.DEAD, Outcome.NOT_MET)
"""The ways an edge may close that end its child."""

_REOPENED = (Outcome.CANCELLED, Outcome.DEAD)


@dataclass(slots=True)
class ModelEdge:
    """An edge as it should be; `value` is a result that its child has not got for good yet."""

    child_id: str
    edge: Edge
    outcome: Outcome | None = None
    value: str | None = None

    def close(self, status: Status, result: str | None) -> Outcome:
        """Its parent has ended like this."""
        self.outcome = self._decided(status, result)
        if self.edge.kind is EdgeKind.DATA:
            self.value = result or "null"
        return self.outcome

    def _decided(self, status: Status, result: str | None) -> Outcome:
        kind, policy = self.edge.kind, self.edge.on_failure
        if kind is EdgeKind.COMPLETION:
            return Outcome.SATISFIED
        if status is Status.COMPLETED:
            met = kind is not EdgeKind.CONDITIONAL or _met(self.edge.condition, result)
            return Outcome.SATISFIED if met else Outcome.NOT_MET
        if policy is OnFailure.RUN:
            return Outcome.SATISFIED
        return Outcome.DEAD if policy is OnFailure.DEAD_LETTER else Outcome.CANCELLED


class Edges:
    """All edges but those of order lines."""

    def __init__(self) -> None:
        self.known: list[ModelEdge] = []

    def add(self, child_id: str, edges: Iterable[Edge]) -> None:
        """Have a job wait for more; what it waits for already is not added again."""
        there = {_identity(known.edge) for known in self.of(child_id)}
        new = {_identity(edge): edge for edge in edges if _identity(edge) not in there}
        self.known += [ModelEdge(child_id, edge) for edge in new.values()]

    def of(self, child_id: str) -> list[ModelEdge]:
        """What a job waits, or waited, for."""
        return [known for known in self.known if known.child_id == child_id]

    def open_of(self, child_id: str) -> list[ModelEdge]:
        """What a job waits for."""
        return [known for known in self.of(child_id) if known.outcome is None]

    def open_to(self, parent_id: str) -> list[ModelEdge]:
        """What waits for a job."""
        found = (known for known in self.known if known.edge.parent_id == parent_id)
        return [known for known in found if known.outcome is None]

    def against(self, child_id: str) -> bool:
        """Whether a parent's end still stands in a job's way."""
        return any(known.outcome in AGAINST for known in self.of(child_id))

    def reopenable(self, parent_id: str) -> list[ModelEdge]:
        """The edges that a requeue of this parent may open again."""
        return [
            known
            for known in self.known
            if known.edge.parent_id == parent_id and _may_reopen(known)
        ]

    def leads_to(self, start: str, goal: str) -> bool:
        """Whether a job waits for another, perhaps through others, or may come to do so."""
        todo, seen = [start], set[str]()
        while todo:
            job_id = todo.pop()
            if job_id == goal:
                return True
            if job_id not in seen:
                seen.add(job_id)
                todo += [known.edge.parent_id for known in self.of(job_id) if _binds(known)]
        return False

    def inputs(self, child_id: str) -> dict[str, Any]:
        """The arguments that a job gets from its parents."""
        given = [known for known in self.of(child_id) if known.value is not None]
        found: dict[str, Any] = {}
        for known in sorted(given, key=lambda known: known.edge.position or 0):
            name, value = known.edge.argument or "", decode(known.value or "null")
            if known.edge.position is None:
                found[name] = value
            else:
                found.setdefault(name, []).append(value)
        if all(known.outcome is Outcome.SATISFIED for known in self.of(child_id)):
            for known in given:
                known.value = None
        return found


def _binds(known: ModelEdge) -> bool:
    return known.outcome is None or _may_reopen(known)


def _may_reopen(known: ModelEdge) -> bool:
    return known.outcome in _REOPENED and known.edge.on_requeue is OnRequeue.RESTORE


def _met(condition: str | None, result: str | None) -> bool:
    return CONDITIONS[condition or ""](decode(result or "null"))


def _identity(edge: Edge) -> tuple[str, EdgeKind, str]:
    return edge.parent_id, edge.kind, edge.argument or ""
