"""Flows: calls that run one after the other or side by side, enqueued as one."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, overload

import msgspec

from penstock.client.job_type import Partial, Prepared
from penstock.client.step import R_co, Step
from penstock.model.dependency import Edge, EdgeKind, OnFailure, find_cycle
from penstock.model.errors import InvalidOption
from penstock.model.job import Lease
from penstock.model.refused import DependencyCycle

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
T = TypeVar("T")

Ends: TypeAlias = "Partial[Any] | list[Ends]"
"""The calls a step ends with: one, or a list of what each member of a group ends with."""


class Flow(Step[R_co]):
    """A chain or a group: `await app.enqueue(chain(fetch.new(url), parse.new()))`."""

    __slots__ = ("steps",)

    def __init__(self, steps: Iterable[Step[Any]]) -> None:
        self.steps = tuple(steps)
        name = type(self).__name__.lower()
        if not self.steps:
            raise InvalidOption(name, "empty", f"made of calls: {name}(a.new(1), b.new())")
        for step in self.steps:
            if not isinstance(step, Step):
                raise InvalidOption(
                    name, step, "made of calls such as resize.new('a.png'), chains and groups"
                )

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({', '.join(map(_word, self.steps))})"

    def child_of(self, parent: Lease) -> "Flow[R_co]":
        """The same flow with every call a child of a running job."""
        return type(self)([step.child_of(parent) for step in self.steps])


class Chain(Flow[R_co]):
    """Steps one after the other; the result is the last one's."""

    __slots__ = ()

    def __init__(self, steps: Iterable[Step[Any]]) -> None:
        super().__init__(steps)
        self.steps = tuple(
            inner
            for step in self.steps
            for inner in (step.steps if isinstance(step, Chain) else (step,))
        )


class Group(Flow[list[T]], Generic[T]):
    """Steps side by side; the result is the list of theirs, in the order written."""

    __slots__ = ()


@overload
def chain(first: Step[A], /) -> Chain[A]: ...
@overload
def chain(first: Step[Any], second: Step[A], /) -> Chain[A]: ...
@overload
def chain(first: Step[Any], second: Step[Any], third: Step[A], /) -> Chain[A]: ...
@overload
def chain(
    first: Step[Any], second: Step[Any], third: Step[Any], fourth: Step[A], /
) -> Chain[A]: ...
@overload
def chain(*steps: Step[Any]) -> Chain[Any]: ...


def chain(*steps: Step[Any]) -> Chain[Any]:
    """Steps that run one after the other: `chain(fetch.new(url), parse.new(), save.new())`.

    Each takes the result of the one before as its first argument that has neither a value nor a
    default; without such an argument it only waits. After a group that is the list of results.
    """
    return Chain(steps)


@overload
def group(first: Step[A], /) -> Group[A]: ...
@overload
def group(first: Step[A], second: Step[B], /) -> Group[A | B]: ...
@overload
def group(first: Step[A], second: Step[B], third: Step[C], /) -> Group[A | B | C]: ...
@overload
def group(*steps: Step[T]) -> Group[T]: ...


def group(*steps: Step[Any]) -> Group[Any]:
    """Steps that run side by side: `group(resize.new(a), resize.new(b)) | montage.new()`."""
    return Group(steps)


class Plan(msgspec.Struct, frozen=True):
    """A flow as calls that know their edges, in an order they can run in, and its ends."""

    calls: list[Prepared[Any]]
    ends: Ends


def plan(flow: Flow[Any]) -> Plan:
    """Work out every edge of a flow; raises before anything is enqueued."""
    calls: list[Prepared[Any]] = []
    ends = _place(flow, None, calls)
    _refuse_twice(calls)
    return Plan(calls, ends)


def leaves(ends: Ends) -> list[Partial[Any]]:
    """The calls of ends, in order."""
    if isinstance(ends, Partial):
        return [ends]
    return [leaf for part in ends for leaf in leaves(part)]


def _place(step: Step[Any], before: "Ends | None", calls: list[Prepared[Any]]) -> Ends:
    """Put a step's calls behind what goes before it; what it ends with."""
    match step:
        case Group():
            return [_place(member, before, calls) for member in step.steps]
        case Chain():
            ends = before
            for member in step.steps:
                ends = _place(member, ends, calls)
            assert ends is not None
            return ends
        case Partial():
            placed = (step if before is None else _linked(step, before)).complete()
            calls.append(placed)
            return placed
        case _:
            raise InvalidOption("flow", step, "made of calls, chains and groups")


def _linked(call: Partial[Any], before: Ends) -> Partial[Any]:
    """The call behind what goes before; what it says itself about a parent is left as it is."""
    argument = call.lacks[0] if call.lacks else None
    said = {edge.parent_id: edge for edge in call.job.after}
    edges = [
        _under(said[edge.parent_id], edge) if edge.parent_id in said else edge
        for edge in _edges(call, argument, before)
        if argument is not None or edge.parent_id not in said
    ]
    job = msgspec.structs.replace(call.job, after=(*call.job.after, *edges))
    return Partial(call.type, job, call.lacks[1:])


def _under(said: Edge, edge: Edge) -> Edge:
    """An edge with the policies of another to the same parent."""
    any_end = said.kind is EdgeKind.COMPLETION
    return msgspec.structs.replace(
        edge,
        on_failure=OnFailure.RUN if any_end else said.on_failure,
        on_requeue=said.on_requeue,
    )


def _edges(call: Partial[Any], argument: str | None, before: Ends) -> Sequence[Edge]:
    if argument is None:
        return [Edge(parent_id=parent.job.id) for parent in leaves(before)]
    if isinstance(before, Partial):
        return [Edge(parent_id=before.job.id, kind=EdgeKind.DATA, argument=argument)]
    edges: list[Edge] = []
    for position, parent in enumerate(before):
        if not isinstance(parent, Partial):
            raise InvalidOption(
                "flow",
                f"a group whose member ends in a group, before {call.type.name}",
                "one with a call after the inner group that takes its results",
            )
        edges.append(
            Edge(
                parent_id=parent.job.id,
                kind=EdgeKind.DATA,
                argument=argument,
                position=position,
            )
        )
    return edges


def _refuse_twice(calls: Sequence[Prepared[Any]]) -> None:
    """A call has one id, so it can stand in a flow once; twice in a row would be a cycle."""
    parents: dict[str, list[str]] = {}
    for call in calls:
        parents.setdefault(call.job.id, []).extend(edge.parent_id for edge in call.job.after)
    cycle = find_cycle(parents)
    if cycle is not None:
        raise DependencyCycle(cycle, {call.job.id: call.type.name for call in calls})
    seen: set[str] = set()
    for call in calls:
        if call.job.id in seen:
            raise InvalidOption(
                "flow",
                f"{call.type.name} {call.job.id} in two places",
                "made of a call of its own for each place; make another with new",
            )
        seen.add(call.job.id)


def _word(step: Step[Any]) -> str:
    return step.type.name if isinstance(step, Partial) else repr(step)
