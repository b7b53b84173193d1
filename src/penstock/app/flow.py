"""Flows: calls that run one after the other or side by side, enqueued as one."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

import msgspec
from msgspec import Struct

from penstock.app.handle import JobHandle, Jobs
from penstock.app.job_type import Partial, Prepared, R_co, Step
from penstock.app.lookups import check_patience
from penstock.model.dependency import Edge, EdgeKind, OnFailure, find_cycle
from penstock.model.errors import (
    DependencyCycle,
    InvalidOption,
    JobCancelled,
    JobFailed,
    ResultTimeout,
)
from penstock.model.job import Job, Lease
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status

if TYPE_CHECKING:
    pass

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


R = TypeVar("R")


class FlowProgress(Struct, frozen=True):
    """How many jobs of a flow stand where."""

    counts: dict[Status, int]
    total: int

    @property
    def ended(self) -> int:
        """How many have ended, well or not."""
        return sum(count for status, count in self.counts.items() if status.terminal)

    @property
    def percent(self) -> float:
        """How much of the flow has ended, 0 to 100."""
        return 100 * self.ended / self.total


class StepStatus(NamedTuple):
    """How one job of a flow stands."""

    status: Status
    error: str | None


class FlowHandle(Generic[R]):
    """A flow that was enqueued; `jobs` are the handles of its calls in the order written."""

    __slots__ = ("_app", "_places", "_plan", "jobs")

    def __init__(self, app: Jobs, plan: Plan, jobs: "list[JobHandle[Any]]") -> None:
        self._app = app
        self._plan = plan
        self.jobs = jobs
        self._places = {call.job.id: place for place, call in enumerate(plan.calls)}

    def __repr__(self) -> str:
        names = ", ".join(call.type.name for call in self._plan.calls)
        return f"<flow of {len(self.jobs)} jobs: {names}>"

    @property
    def ids(self) -> list[str]:
        """The ids of its jobs, in the order written."""
        return [job.id for job in self.jobs]

    @property
    def created(self) -> bool:
        """Whether this call created every job of it."""
        return all(job.created for job in self.jobs)

    @property
    def ends(self) -> "list[JobHandle[Any]]":
        """The jobs whose results are the flow's."""
        return [self._handle(call) for call in leaves(self._plan.ends)]

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the last step's value, a list for a group; an error names the step."""
        result: R = self._shaped(self._plan.ends, await self.values(timeout))
        return result

    async def cancel(self, reason: str = "cancelled by the caller") -> dict[str, Status]:
        """Cancel what waits and ask what runs to stop; return each job's status afterwards."""
        return await self._app.cancel_many(self.ids, reason)

    async def progress(self) -> FlowProgress:
        """Return how many of its jobs are in which state."""
        counts = Counter(step.status for step in await self.statuses())
        return FlowProgress(dict(counts), len(self.jobs))

    async def values(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the results of its ends, by their ids."""
        ended: dict[str, Job] = {}
        ids = [handle.id for handle in self.ends]
        try:
            async with (
                asyncio.timeout(check_patience(timeout)),
                aclosing(self._app.watch(*ids)) as changes,
            ):
                async for job in changes:
                    ended[job.id] = job
                    if job.status.terminal and job.status is not Status.COMPLETED:
                        break
        except TimeoutError:
            late = next(i for i in ids if i not in ended or not ended[i].status.terminal)
            status = ended[late].status if late in ended else None
            raise ResultTimeout(late, timeout or 0, status) from None
        for job in ended.values():
            if job.status.terminal and job.status is not Status.COMPLETED:
                raise await self.failure(job.id)
        for job_id in ids:
            if job_id not in ended:
                raise JobNotFound(job_id)
        return {handle.id: handle.value(ended[handle.id]) for handle in self.ends}

    async def statuses(self) -> list[StepStatus]:
        """How each of its jobs stands, in the order written."""
        jobs = {job.id: job for job in await self._app.get_many(self.ids)}
        for job_id in self.ids:
            if job_id not in jobs:
                raise JobNotFound(job_id)
        return [StepStatus(jobs[i].status, jobs[i].error) for i in self.ids]

    async def failure(self, job_id: str) -> JobFailed:
        """The error of the step that is to blame, which may be long before the one that ended."""
        statuses = await self.statuses()
        place = self._to_blame(self.ids.index(job_id), statuses)
        status, error = statuses[place]
        said = f"step {place + 1} of {len(self.jobs)}, {self._plan.calls[place].type.name!r}"
        words = f"{said}: {error}" if error else said
        if status is Status.CANCELLED:
            return JobCancelled(self.jobs[place].id, words)
        return JobFailed(self.jobs[place].id, status, words)

    def _to_blame(self, place: int, statuses: list[StepStatus]) -> int:
        """Walk up from a job that failed over the parents it failed because of."""
        while True:
            for edge in self._plan.calls[place].job.after:
                above = self._places.get(edge.parent_id)
                if above is None or edge.kind is EdgeKind.COMPLETION:
                    continue
                failed = statuses[above].status in (Status.CANCELLED, Status.DEAD_LETTER)
                if failed and edge.on_failure is not OnFailure.RUN:
                    place = above
                    break
            else:
                return place

    def _handle(self, call: Partial[Any]) -> "JobHandle[Any]":
        return self.jobs[self._places[call.job.id]]

    def _shaped(self, ends: Ends, values: dict[str, Any]) -> Any:
        if isinstance(ends, Partial):
            return values[self._handle(ends).id]
        return [self._shaped(part, values) for part in ends]


class Batch:
    """One enqueue: `calls` are all its jobs, each after the steps of its flow before it."""

    __slots__ = ("_items", "calls")

    def __init__(self, given: Sequence[Any]) -> None:
        if not isinstance(given, list) and not isinstance(given, Iterable):
            raise InvalidOption("calls", given, "a list of calls made with new, or of flows")
        given = list(given)
        self._items: list[Prepared[Any] | Plan] | None = None
        for each in given:
            if type(each) is not Prepared or each.lacks:
                break
        else:
            self.calls: list[Prepared[Any]] = given
            return
        self._items = [_item(each) for each in given]
        self.calls = []
        for item in self._items:
            self.calls += item.calls if isinstance(item, Plan) else [item]

    def handles(
        self,
        app: Jobs,
        jobs: Sequence[JobHandle[Any]],
        flow: Callable[..., FlowHandle[Any]] = FlowHandle,
    ) -> list[Any]:
        """A handle for each thing that was given, from those of the calls."""
        if self._items is None:
            return list(jobs)
        rest = iter(jobs)
        return [
            flow(app, item, [next(rest) for _ in item.calls])
            if isinstance(item, Plan)
            else next(rest)
            for item in self._items
        ]


def _item(given: Any) -> Prepared[Any] | Plan:
    if isinstance(given, Partial):
        return given.complete()
    if isinstance(given, Flow):
        return plan(given)
    raise InvalidOption("call", given, "one made with new, or a chain or group of them")
