"""The edges between jobs, as people look at them."""

from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, Outcome
from penstock.model.states import Status
from penstock.store.contract import Dependencies, Dependency
from penstock.store.relational.transaction import Transaction


def dependencies(tx: Transaction, job_id: str, limit: int) -> Dependencies:
    """The edges of a job in both directions, the open ones first."""
    return Dependencies(
        [_dependency(*row) for row in tx.rows("parents_of", (job_id, limit))],
        [_dependency(*row) for row in tx.rows("children_of", (job_id, limit))],
    )


def open_parents(tx: Transaction, job_id: str, limit: int) -> list[Dependency]:
    """What a job still waits for."""
    parents = (_dependency(*row) for row in tx.rows("parents_of", (job_id, limit)))
    return [parent for parent in parents if parent.outcome is None]


def _dependency(
    child_id: str,
    parent_id: str,
    kind: str,
    condition: str | None,
    argument: str,
    position: int | None,
    on_failure: str,
    on_requeue: str,
    parent_type: str | None,
    parent_status: str | None,
    child_type: str | None,
    child_status: str | None,
    outcome: str | None,
    closed_at: int | None,
) -> Dependency:
    edge = Edge(
        parent_id=parent_id,
        kind=EdgeKind(kind),
        condition=condition,
        argument=argument or None,
        position=position,
        on_failure=OnFailure(on_failure),
        on_requeue=OnRequeue(on_requeue),
    )
    return Dependency(
        child_id=child_id,
        edge=edge,
        parent_type=parent_type,
        parent_status=None if parent_status is None else Status(parent_status),
        child_type=child_type,
        child_status=None if child_status is None else Status(child_status),
        outcome=None if outcome is None else Outcome(outcome),
        closed_at=closed_at,
    )
