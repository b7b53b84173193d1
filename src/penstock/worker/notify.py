"""Calling the application's hooks; one that fails or overruns is logged and changes nothing."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from penstock.app.context import Context
from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass

log = structlog.get_logger("penstock.worker")

Hook = Callable[..., Any]


async def notify(hooks: Sequence[Hook], context: Context, *args: Any, seconds: float) -> None:
    """Call each hook with the context and what there is to tell; each has that many seconds."""
    for hook in hooks:
        began = time.monotonic()
        try:
            answer = hook(context, *args)
            if inspect.isawaitable(answer):
                await _within(seconds, answer)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                raise
            if not isinstance(error, _Overrun):
                stack = Failure.of(error, ErrorClass.UNKNOWN).stack
                log.error("hook_failed", **_about(hook, context), error=stack)
                continue
        took = time.monotonic() - began
        if took >= seconds:
            log.warning("hook_overran", **_about(hook, context), seconds=round(took, 1))


def is_being_cancelled() -> bool:
    """Whether somebody asked the current task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Overrun(Exception):
    """A hook took longer than it may, and was abandoned."""


async def _within(seconds: float, answer: Awaitable[Any]) -> None:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await answer
    except TimeoutError:
        if limit.expired():
            raise _Overrun from None
        raise


def _about(hook: Hook, context: Context) -> dict[str, Any]:
    name = getattr(hook, "__qualname__", repr(hook))
    return {"hook": name, "job_id": context.id, "job_type": context.job.type}
