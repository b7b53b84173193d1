"""Calling the application's hooks; one that fails is logged and changes nothing."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from penstock.client.context import Context
from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass

log = structlog.get_logger("penstock.worker")


async def notify(hooks: Sequence[Callable[..., Any]], context: Context, *args: Any) -> None:
    """Call each hook with the context and what there is to tell."""
    for hook in hooks:
        try:
            answer = hook(context, *args)
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:
            name = getattr(hook, "__qualname__", repr(hook))
            told = Failure.of(error, ErrorClass.UNKNOWN)
            log.error(
                "hook_failed",
                hook=name,
                job_id=context.id,
                job_type=context.job.type,
                error=told.stack,
            )
