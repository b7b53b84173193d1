"""Other arguments for a job that has ended, checked against its type."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.client.codec import encode
from penstock.model.dependency import Edge, EdgeKind
from penstock.model.errors import InvalidArguments, InvalidOption, PenstockError

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.job_type import JobType
    from penstock.model.job import Job
    from penstock.store.contract import Store

EdgesOf = Callable[[str], Awaitable[Sequence[Edge]]]
"""Tells what a job waits for, by its id."""


async def amended(
    app: "Penstock", job: "Job", arguments: Mapping[str, Any], payload: str | None
) -> str:
    """The payload with the named arguments changed, or a whole new one, if it fits the type."""
    type_ = app.find_type(job.type)
    if bool(arguments) == (payload is not None):
        raise InvalidOption("arguments", "given twice or not at all", "arguments or a payload")
    text = _changed(job, arguments) if payload is None else payload
    type_.check_bounds(text)
    problem = await misfit(stored_edges(app.store), type_, job, text)
    if problem is not None:
        raise problem
    return text


def stored_edges(store: "Store") -> EdgesOf:
    """What a job waits for, read from its store."""

    async def edges_of(job_id: str) -> list[Edge]:
        return [each.edge for each in (await store.reader.dependencies(job_id)).parents]

    return edges_of


async def misfit(
    edges_of: EdgesOf, type_: "JobType[..., ..., Any]", job: "Job", payload: str
) -> PenstockError | None:
    """Why a payload does not fit; an argument that a parent is still to give may be missing."""
    try:
        type_.arguments.check(payload, await _awaited(edges_of, job, payload))
    except PenstockError as error:
        return error
    return None


async def _awaited(edges_of: EdgesOf, job: "Job", payload: str) -> list[str]:
    """The arguments that parents have not given yet."""
    if job.waiting_on == 0:
        return []
    names = {each.argument for each in await edges_of(job.id) if each.kind is EdgeKind.DATA}
    try:
        given = msgspec.json.decode(payload, type=dict[str, msgspec.Raw]).keys()
    except (msgspec.MsgspecError, RecursionError):
        return []
    return [name for name in names if name is not None and name not in given]


def _changed(job: "Job", arguments: Mapping[str, Any]) -> str:
    try:
        given = msgspec.json.decode(job.payload, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidArguments(
            job.type, "payload", "an object, or a whole new payload", str(error)
        ) from error
    try:
        changes = {name: msgspec.Raw(encode(value)) for name, value in arguments.items()}
        return msgspec.json.encode(given | changes).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidArguments(
            job.type, "payload", "something JSON can hold", str(error)
        ) from error
