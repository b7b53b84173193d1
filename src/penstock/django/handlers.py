"""Tasks as job types: what a worker calls, with Django's connections in order around it."""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, Unpack, cast
from weakref import WeakKeyDictionary

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections, reset_queries

from penstock.app.context import Context
from penstock.app.job_type import JobType
from penstock.app.options import Registration
from penstock.app.penstock import Penstock
from penstock.django.framework import (
    TaskContext,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from penstock.django.results import as_enqueued, error_of, first_result, moment, result_of
from penstock.model.errors import InvalidOption

F = TypeVar("F", bound=Callable[..., Any])

_OF_THE_TASK = {"name", "aliases", "queue", "priority", "delay", "at", "metadata"}
_OF_A_CALL = {"key", "key_scope", "key_window"}
_OPTIONS = "penstock_options"
_TASK = "penstock_task"


def job_options(**options: Unpack[Registration]) -> Callable[[F], F]:
    """Say of a task what Django has no word for: `@task`, then `@job_options(timeout=60)`."""
    for name, value in options.items():
        if name in _OF_THE_TASK:
            raise InvalidOption(name, value, "given to @task, or with task.using(…)")
        if name in _OF_A_CALL:
            raise InvalidOption(name, value, "left out, because every call would share it")

    def note(function: F) -> F:
        if hasattr(function, "func"):
            raise InvalidOption("job_options", repr(function), "written below @task, not above it")
        setattr(function, _OPTIONS, options)
        return function

    return note


def with_connections(function: F) -> F:
    """Let a handler use the ORM: connections are checked before it and given back after it.

    Django does this around every request, and nobody around a job: a connection the server has
    closed would fail the next job on the same thread. An asynchronous handler has a thread for the
    ORM to itself, and connections that end with it: none is closed while another handler uses it.
    """
    if iscoroutinefunction(function):

        @wraps(function)
        async def in_loop(*args: Any, **kwargs: Any) -> Any:
            async with ThreadSensitiveContext():
                await sync_to_async(_make_ready)()
                try:
                    return await function(*args, **kwargs)
                finally:
                    await sync_to_async(_close_connections)()

        return cast("F", in_loop)

    @wraps(function)
    def in_thread(*args: Any, **kwargs: Any) -> Any:
        _make_ready()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return cast("F", in_thread)


def _make_ready() -> None:
    reset_queries()
    close_old_connections()


def _close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:  # as in a test of Django's, which lends its thread
            connection.close()


def type_of(app: Penstock, task: Any) -> JobType[..., ..., Any]:
    """Return the job type that runs a task, registered when it is first asked for."""
    known = app.types.get(task.module_path)
    if known is not None and getattr(known.function, _TASK, None) is task.func:
        return known
    options: dict[str, Any] = getattr(task.func, _OPTIONS, {})
    made: JobType[..., ..., Any] = app.job(name=task.module_path, **options)(_handler_of(task))
    return made


def _handler_of(task: Any) -> Callable[..., Any]:
    function, takes_context = task.func, task.takes_context

    async def in_loop(ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
        result = await _begin(ctx, task)
        await _in_thread(task_started, result)
        first = (TaskContext(task_result=result),) if takes_context else ()
        return normalize_json(await function(*first, *args, **kwargs))

    def in_thread(ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
        result = _first(ctx, task) or ctx.wait_in_thread(lambda: _begin(ctx, task))
        task_started.send_robust(sender=_sender(task), task_result=result)
        first = (TaskContext(task_result=result),) if takes_context else ()
        return normalize_json(function(*first, *args, **kwargs))

    handler: Any = with_connections(in_loop if iscoroutinefunction(function) else in_thread)
    handler.__module__, handler.__qualname__ = function.__module__, function.__qualname__
    handler.__name__, handler.__doc__ = function.__name__, function.__doc__
    setattr(handler, _TASK, function)
    return cast("Callable[..., Any]", handler)


_results: WeakKeyDictionary[Context, Any] = WeakKeyDictionary()
"""What a running task is, and will be told of when it ends, without asking the store again."""


async def _begin(ctx: Context, task: Any) -> Any:
    return _first(ctx, task) or await _ask(ctx, task)


def _first(ctx: Context, task: Any) -> Any | None:
    if ctx.job.fence > 1 or ctx.worker is None:
        return None
    result = first_result(ctx.job, ctx.now, ctx.worker, task)
    _results[ctx] = result
    return result


async def _ask(ctx: Context, task: Any) -> Any:
    """Ask the store about a task, which has earlier attempts or runs in a process of its own."""
    async with ctx.app as app:
        [job], executions = await app.get_many([ctx.id]), await app.executions(ctx.id)
    found = as_enqueued(task, job, task.backend)
    _results[ctx] = result = result_of(job, executions, found, task.backend)
    return result


def send_when_ended(app: Penstock, find: Callable[[str], Any]) -> None:
    """Have the workers of an application send `task_finished`."""

    async def completed(ctx: Context, value: Any) -> None:
        task = find(ctx.job.type)
        if task is not None:
            result = await _end(ctx, task, TaskResultStatus.SUCCESSFUL)
            object.__setattr__(result, "_return_value", value)
            await _in_thread(task_finished, result)

    async def failed(ctx: Context, error: BaseException) -> None:
        task = find(ctx.job.type)
        if task is None or ctx.will_retry:
            return
        result = await _end(ctx, task, TaskResultStatus.FAILED)
        result.errors.append(error_of(error))
        try:
            raise error
        except BaseException:  # where a receiver that logs the current exception finds it
            await _in_thread(task_finished, result)

    app.on_complete(completed)
    app.on_failed(failed)


async def _end(ctx: Context, task: Any, status: Any) -> Any:
    result = _results.get(ctx) or await _ask(ctx, task)
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", moment(round(ctx.now.timestamp() * 1000)))
    return result


async def _in_thread(signal: Any, result: Any) -> None:
    # Not in the one thread for whatever is asynchronous, which anything may hold up.
    send = sync_to_async(with_connections(signal.send_robust), thread_sensitive=False)
    await send(sender=_sender(result.task), task_result=result)


def _sender(task: Any) -> type:
    return type(task.get_backend())
