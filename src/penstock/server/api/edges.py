"""Ids and edges that come with calls, checked before anything is made of them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from penstock.model.condition import check_condition
from penstock.model.dependency import Edge, EdgeKind
from penstock.model.ids import id_time_ms, is_id
from penstock.server.problems import Refusal

if TYPE_CHECKING:
    from penstock.server.api.calls import Call

LEEWAY_MS = 86_400_000
"""How far the clock of a caller who makes ids may be off: pages and pruning go by their time."""


class CallEdge(Edge, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`models.NewEdge` as it is read."""


def made_ids(calls: "Sequence[Call]", now: int) -> set[str]:
    """The ids that callers made themselves, each once and of about now."""
    made = [call.id for call in calls if call.id is not None]
    for job_id in made:
        if not is_id(job_id):
            raise Refusal(422, f"{job_id[:64]!r} is no ULID.", field="id")
        if abs(id_time_ms(job_id) - now) > LEEWAY_MS:
            raise Refusal(
                422, "The id is of another day; set the clock, and make one now.", field="id"
            )
    ids = set(made)
    if len(ids) < len(made):
        raise Refusal(422, "Two of the jobs have the same id.", field="id")
    return ids


def parents_of(calls: "Sequence[Call]") -> set[str]:
    """The ids of all jobs that calls wait for."""
    return {edge.parent_id for call in calls for edge in edges_in(call.after or ())}


def edges_in(entries: "Iterable[str | CallEdge]") -> list[Edge]:
    """What a job is to wait for, each entry the id of a job or an edge that makes sense."""
    found = [Edge(parent_id=each) if isinstance(each, str) else _checked(each) for each in entries]
    for edge in found:
        if not is_id(edge.parent_id):
            raise Refusal(422, f"{edge.parent_id[:64]!r} is no id of a job.", field="after")
    return found


def _checked(edge: CallEdge) -> Edge:
    """The edge, if it makes sense."""
    if edge.kind is EdgeKind.ORDER:
        raise Refusal(422, "An edge of kind 'order' is made by an order_key.", field="after")
    _need(edge, "condition", EdgeKind.CONDITIONAL)
    _need(edge, "argument", EdgeKind.DATA)
    if edge.condition is not None:
        check_condition(edge.condition)
    name = edge.argument
    if name is not None and not (name.isidentifier() and len(name) <= 128):
        raise Refusal(422, "The argument of an edge is the name of one.", field="after")
    if edge.position is not None and (edge.argument is None or not 0 <= edge.position < 10_000):
        raise Refusal(
            422, "The position of an edge counts the values of its argument.", field="after"
        )
    return edge


def _need(edge: CallEdge, name: str, kind: EdgeKind) -> None:
    if (getattr(edge, name) is not None) is not (edge.kind is kind):
        raise Refusal(422, f"An edge has a {name} if it is of kind {kind.value!r}.", field="after")
