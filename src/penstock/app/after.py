"""What a job runs after: `after=[a, after(b, data="photo")]` as edges, checked at the call."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue, check_condition
from penstock.model.errors import DependencyCycle, InvalidOption
from penstock.model.ids import is_id

if TYPE_CHECKING:
    from penstock.app.flow import FlowHandle
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import Partial
    from penstock.app.penstock import Penstock
    from penstock.model.job import Job

    Parent: TypeAlias = str | Job | JobHandle[Any] | Partial[Any] | FlowHandle[Any]

When = Literal["success", "completion"]
Failing = Literal["cancel", "dead_letter", "run"]
Requeued = Literal["restore", "leave"]


class Wait(Struct, frozen=True):
    """The edges of one entry of `after=`; `listed` when they fill an argument as a list."""

    edges: tuple[Edge, ...]
    listed: bool = False


class After(Wait, frozen=True):
    """Waits for a parent."""


class Input(Wait, frozen=True):
    """Waits for a parent and takes its result as an argument."""


@overload
def after(
    parent: "Parent",
    *,
    data: str,
    condition: str | None = None,
    on_failure: Failing = "cancel",
    on_requeue: Requeued = "restore",
) -> Input: ...
@overload
def after(
    parent: "Parent",
    *,
    when: When = "success",
    data: None = None,
    condition: str | None = None,
    on_failure: Failing = "cancel",
    on_requeue: Requeued = "restore",
) -> After: ...


def after(
    parent: "Parent",
    *,
    when: When = "success",
    data: str | None = None,
    condition: str | None = None,
    on_failure: Failing = "cancel",
    on_requeue: Requeued = "restore",
) -> Wait:
    """One entry of `after=`: `resize.options(after=after(photo, data="image")).enqueue()`.

    `data` names the argument that takes the parent's result, `condition` is an expression on it:
    `after(count, condition="result['total'] > 100")`. `on_failure` says what becomes of this job
    when the parent dies or is cancelled, `on_requeue` whether it comes back with the parent.
    """
    _one_of("when", when, ("success", "completion"))
    _one_of("on_failure", on_failure, tuple(OnFailure))
    _one_of("on_requeue", on_requeue, tuple(OnRequeue))
    if when == "completion" and (data is not None or condition is not None):
        named = "data" if data is not None else "condition"
        raise InvalidOption("when", when, f"'success' where {named}= needs the parent's result")
    if data is not None and not str(data).isidentifier():
        raise InvalidOption("data", data, "the name of an argument")
    ids = ids_of(parent)
    policy = Edge(
        parent_id="",
        kind=EdgeKind.SUCCESS if when == "success" else EdgeKind.COMPLETION,
        on_failure=OnFailure(on_failure),
        on_requeue=OnRequeue(on_requeue),
    )
    kinds: list[Edge] = []
    if condition is not None:
        kinds.append(
            replace(policy, kind=EdgeKind.CONDITIONAL, condition=check_condition(condition))
        )
    if data is not None:
        kinds.append(replace(policy, kind=EdgeKind.DATA, argument=data))
    edges = tuple(replace(kind, parent_id=id_) for kind in kinds or [policy] for id_ in ids)
    return (After if data is None else Input)(edges, listed=hasattr(parent, "ends"))


def edges_of(given: Any) -> tuple[Edge, ...]:
    """What an `after=` option says, as edges; several into one argument are numbered."""
    if given is None:
        return ()
    entries = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    waits = [_wait(entry) for entry in entries]
    edges = _merged([edge for wait in waits for edge in wait.edges])
    filled = Counter(edge.argument for edge in edges if edge.kind is EdgeKind.DATA)
    listed = {edge.argument for wait in waits if wait.listed for edge in wait.edges}
    place: Counter[str | None] = Counter()
    numbered: list[Edge] = []
    for edge in edges:
        name = edge.argument
        if edge.kind is EdgeKind.DATA and (filled[name] > 1 or name in listed):
            numbered.append(replace(edge, position=place[name]))
            place[name] += 1
        else:
            numbered.append(edge)
    return tuple(numbered)


def awaited(edges: Sequence[Edge]) -> tuple[str, ...]:
    """The arguments that parents' results will fill."""
    return tuple(dict.fromkeys(edge.argument for edge in edges if edge.argument is not None))


async def add_edges(app: "Penstock", child: "Parent", parents: Sequence[Any]) -> None:
    """Have an enqueued job wait for more parents; a refusal names the jobs' types."""
    edges = edges_of(parents)
    [child_id] = ids_of(child)
    job = await app.get(child_id)
    filled = awaited(edges)
    if filled and job.type in app.types:
        app.types[job.type].arguments.check_awaited(filled, decode(job.payload))
    try:
        await app.store.jobs.depend(child_id, edges)
    except DependencyCycle as error:
        jobs = await app.store.reader.get(error.path)
        raise DependencyCycle(error.path, {job.id: job.type for job in jobs}) from error


def _wait(entry: Any) -> Wait:
    if isinstance(entry, Wait):
        return entry
    return Wait((entry,)) if isinstance(entry, Edge) else after(entry)


def _merged(edges: Sequence[Edge]) -> list[Edge]:
    """Each parent once per purpose; saying the same twice is no harm, unless it fills a list."""
    kept: dict[tuple[str, EdgeKind, str | None], Edge] = {}
    for edge in edges:
        earlier = kept.setdefault((edge.parent_id, edge.kind, edge.argument), edge)
        if earlier is edge:
            continue
        if earlier != edge:
            raise InvalidOption(
                "after", edge.parent_id, f"there once as {edge.kind.value!r}, not in two ways"
            )
        if edge.kind is EdgeKind.DATA:
            raise InvalidOption(
                "after", edge.parent_id, f"there once for the argument {edge.argument!r}"
            )
    return list(kept.values())


def ids_of(parent: Any) -> list[str]:
    """The id of a job in any of its shapes; a flow is waited for at its ends."""
    if hasattr(parent, "ends"):
        return [handle.id for handle in parent.ends]
    job = getattr(parent, "job", parent)
    job_id: Any = getattr(job, "id", job)
    if not isinstance(job_id, str) or not is_id(job_id):
        raise InvalidOption("after", parent, "a job, its handle, its id or a call made with new")
    return [job_id]


def _one_of(option: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InvalidOption(option, value, f"one of: {', '.join(allowed)}")
