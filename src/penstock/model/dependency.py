"""Edges between jobs: what a job waits for, and what becomes of it when that goes wrong."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode, encode

from penstock.model.condition import holds
from penstock.model.states import Status


class EdgeKind(StrEnum):
    """What a child needs of its parent."""

    COMPLETION = "completion"
    SUCCESS = "success"
    DATA = "data"
    CONDITIONAL = "conditional"
    ORDER = "order"


class OnFailure(StrEnum):
    """What becomes of a child whose parent died or was cancelled."""

    CANCEL = "cancel"
    DEAD_LETTER = "dead_letter"
    RUN = "run"


class OnRequeue(StrEnum):
    """What becomes of a child that ended because of its parent, when that parent is requeued."""

    RESTORE = "restore"
    LEAVE = "leave"


class Edge(Struct, frozen=True, kw_only=True):
    """One thing a job waits for.

    A `data` edge puts the parent's result into the child's `argument`; several with one argument
    and a `position` each make a list. An `order` edge only keeps jobs of one order key in line.
    """

    parent_id: str
    kind: EdgeKind = EdgeKind.SUCCESS
    condition: str | None = None
    argument: str | None = None
    position: int | None = None
    on_failure: OnFailure = OnFailure.CANCEL
    on_requeue: OnRequeue = OnRequeue.RESTORE


class Outcome(StrEnum):
    """How an edge was closed."""

    SATISFIED = "satisfied"
    CANCELLED = "cancelled"
    DEAD = "dead"
    NOT_MET = "not_met"


def decide(edge: Edge, status: Status, result: str | None) -> Outcome:
    """How an edge closes when its parent has ended."""
    if edge.kind in (EdgeKind.COMPLETION, EdgeKind.ORDER):
        return Outcome.SATISFIED
    if status is not Status.COMPLETED:
        return _FAILED[edge.on_failure]
    if edge.kind is EdgeKind.CONDITIONAL and not holds(edge.condition or "", result):
        return Outcome.NOT_MET
    return Outcome.SATISFIED


_FAILED = {
    OnFailure.CANCEL: Outcome.CANCELLED,
    OnFailure.DEAD_LETTER: Outcome.DEAD,
    OnFailure.RUN: Outcome.SATISFIED,
}


def fell_with_parent(error_details: str | None) -> bool:
    """Whether a job ended only because of a parent, as its `error_details` tell."""
    return error_details is not None and decode(error_details).get("code") == "ParentFailed"


def find_cycle(parents: Mapping[str, Iterable[str]]) -> list[str] | None:
    """A path that comes back to its beginning, if there is one: `["a", "b", "a"]`."""
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        on_path: set[str] = set()
        walk = [iter((start,))]
        while walk:
            job_id = next(walk[-1], None)
            if job_id is None:
                walk.pop()
                if path:
                    on_path.discard(path[-1])
                    done.add(path.pop())
                continue
            if job_id in on_path:
                return [*path[path.index(job_id) :], job_id]
            if job_id not in done:
                path.append(job_id)
                on_path.add(job_id)
                walk.append(iter(parents.get(job_id, ())))
    return None


def with_inputs(payload: str, inputs: Sequence[tuple[str, int | None, str | None]]) -> str:
    """A payload with its parents' results: (argument, position, JSON text) each.

    The texts are put together as they are, so that no number is read and written anew. What an
    earlier call put in, before a parent was requeued, is replaced.
    """
    single: dict[str, str] = {}
    listed: dict[str, list[tuple[int, str]]] = {}
    for argument, position, result in inputs:
        if position is None:
            single[argument] = result or "null"
        else:
            listed.setdefault(argument, []).append((position, result or "null"))
    for argument, results in listed.items():
        single[argument] = f"[{','.join(text for _, text in sorted(results))}]"
    if not single:
        return payload
    added = ",".join(f"{encode(name).decode()}:{text}" for name, text in single.items())
    body = _without(payload, single).rstrip()[:-1].rstrip()
    return f"{body}{'' if body.endswith('{') else ','}{added}}}"


def _without(payload: str, names: Collection[str]) -> str:
    try:
        given = decode(payload, type=dict[str, Raw])
    except (DecodeError, RecursionError):
        return payload  # it was spoilt by hand; the child's own worker will say so
    if given.keys().isdisjoint(names):
        return payload
    kept = [
        f"{encode(name).decode()}:{bytes(value).decode()}"
        for name, value in given.items()
        if name not in names
    ]
    return f"{{{','.join(kept)}}}"
