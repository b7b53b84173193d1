"""Asking what was enqueued."""

from collections.abc import Coroutine
from typing import Any, overload

import msgspec

from penstock.app.arguments import encode
from penstock.app.job_type import JobType
from penstock.app.penstock import Penstock
from penstock.app.sync import SyncPenstock
from penstock.model.job import Job

AnyType = str | JobType[..., ..., Any] | None
PAGE = 500


@overload
def enqueued(app: Penstock, job_type: AnyType = None) -> Coroutine[Any, Any, list[Job]]: ...
@overload
def enqueued(app: SyncPenstock, job_type: AnyType = None) -> list[Job]: ...


def enqueued(
    app: Penstock | SyncPenstock, job_type: AnyType = None
) -> Coroutine[Any, Any, list[Job]] | list[Job]:
    """Every job in the store, whatever became of it, oldest first: `await enqueued(app, send)`."""
    if isinstance(app, SyncPenstock):
        return app.run(_enqueued(app.app, job_type))
    return _enqueued(app, job_type)


@overload
def assert_enqueued(
    app: Penstock, job_type: AnyType, /, **arguments: Any
) -> Coroutine[Any, Any, Job]: ...
@overload
def assert_enqueued(app: SyncPenstock, job_type: AnyType, /, **arguments: Any) -> Job: ...


def assert_enqueued(
    app: Penstock | SyncPenstock, job_type: AnyType, /, **arguments: Any
) -> Coroutine[Any, Any, Job] | Job:
    """The first job of a type with these arguments; others it may have do not matter.

    `job = await assert_enqueued(app, send_mail, to="a@example.com")`, or pass `app.sync`.
    """
    if isinstance(app, SyncPenstock):
        return app.run(_assert_enqueued(app.app, job_type, arguments))
    return _assert_enqueued(app, job_type, arguments)


@overload
def assert_not_enqueued(
    app: Penstock, job_type: AnyType, /, **arguments: Any
) -> Coroutine[Any, Any, None]: ...
@overload
def assert_not_enqueued(app: SyncPenstock, job_type: AnyType, /, **arguments: Any) -> None: ...


def assert_not_enqueued(
    app: Penstock | SyncPenstock, job_type: AnyType, /, **arguments: Any
) -> Coroutine[Any, Any, None] | None:
    """Fail if a job of this type with these arguments was enqueued."""
    if isinstance(app, SyncPenstock):
        return app.run(_assert_not_enqueued(app.app, job_type, arguments))
    return _assert_not_enqueued(app, job_type, arguments)


async def _enqueued(app: Penstock, type_: AnyType) -> list[Job]:
    names = _names(app, type_)
    found: list[Job] = []
    before: str | None = None
    while page := await app.find(limit=PAGE, before=before):
        found += [job for job in page if names is None or job.type in names]
        before = page[-1].id
    return found[::-1]


async def _assert_enqueued(app: Penstock, type_: AnyType, arguments: dict[str, Any]) -> Job:
    jobs = await _enqueued(app, type_)
    for job in jobs:
        if _has(job, arguments):
            return job
    listed = "".join(f"\n  {job.type} {job.payload}" for job in jobs) or " none at all"
    raise AssertionError(f"No job was enqueued as {_call(type_, arguments)}; of its type:{listed}")


async def _assert_not_enqueued(app: Penstock, type_: AnyType, arguments: dict[str, Any]) -> None:
    for job in await _enqueued(app, type_):
        if _has(job, arguments):
            raise AssertionError(
                f"A job was enqueued as {_call(type_, arguments)}: {job.id} {job.payload}"
            )


def _names(app: Penstock, type_: AnyType) -> tuple[str, ...] | None:
    if type_ is None:
        return None
    return app.find_type(type_).names if isinstance(type_, str) else type_.names


def _has(job: Job, arguments: dict[str, Any]) -> bool:
    """Compared as JSON, as which both were stored: datetimes and models match themselves."""
    wanted = msgspec.json.decode(encode(arguments))
    given = msgspec.json.decode(job.payload)
    return all(name in given and given[name] == value for name, value in wanted.items())


def _call(type_: AnyType, arguments: dict[str, Any]) -> str:
    name = type_.name if isinstance(type_, JobType) else type_
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
