"""Keeping processes alive: when one that died is started again, and what becomes of orphans."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from time import monotonic

from penstock.model.errors import PenstockError, StoreFull, StoreUnavailable

WORTH_ANOTHER_TRY = 1
BAD_SPEC = 2
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 30.0
HEALTHY_SECONDS = 10.0
ORPHAN_SECONDS = 1.0


async def keep(run: Callable[[], Awaitable[bool]], stopping: asyncio.Event) -> None:
    """Run a process anew whenever it has ended, until its run says that this was the last.

    The pauses between them grow as long as none lasts.
    """
    pause, started = FIRST_PAUSE_SECONDS, monotonic()
    while await run():
        healthy = monotonic() - started > HEALTHY_SECONDS
        pause = FIRST_PAUSE_SECONDS if healthy else min(pause * 2, MAX_PAUSE_SECONDS)
        await until(stopping, pause)
        started = monotonic()


async def until(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than that."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def orphaned(parent_pid: int | None) -> None:
    """Wait until whoever started this process is gone; for ever, if nobody did."""
    while parent_pid is None or os.getppid() == parent_pid:  # noqa: ASYNC110 - nothing rings
        await asyncio.sleep(ORPHAN_SECONDS)


def exit_code_of(error: PenstockError) -> int:
    """A store that is away for a while is worth another try, a mistake of the caller is not."""
    return WORTH_ANOTHER_TRY if isinstance(error, StoreUnavailable | StoreFull) else BAD_SPEC
