"""Other arguments for a job that has ended, checked against its type."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.client.codec import encode
from penstock.model.dependency import EdgeKind
from penstock.model.errors import InvalidArguments, InvalidOption, PenstockError

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.job_type import JobType
    from penstock.model.job import Job
    from penstock.store.contract import Store


async def amended(
    app: "Penstock", job: "Job", arguments: Mapping[str, Any], payload: str | None
) -> str:
    """The payload with the named arguments changed, or a whole new one, if it fits the type."""
    type_ = app.find_type(job.type)
    if bool(arguments) == (payload is not None):
        raise InvalidOption("arguments", "given twice or not at all", "arguments or a payload")
    text = _changed(job, arguments) if payload is None else payload
    type_.check_bounds(text)
    problem = await misfit(app.store, type_, job, text)
    if problem is not None:
        raise problem
    return text


async def misfit(
    store: "Store", type_: "JobType[..., ..., Any]", job: "Job", payload: str
) -> PenstockError | None:
    """Why a payload does not fit; an argument that a parent is still to give may be missing."""
    try:
        type_.arguments.check(payload, await _awaited(store, job, payload))
    except PenstockError as error:
        return error
    return None


async def _awaited(store: "Store", job: "Job", payload: str) -> list[str]:
    """The arguments that parents have not given yet."""
    if job.waiting_on == 0:
        return []
    edges = (await store.reader.dependencies(job.id)).parents
    names = {each.edge.argument for each in edges if each.edge.kind is EdgeKind.DATA}
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
