"""Keeping processes alive: how one is started and told what to do, and when it is started again."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic

from penstock.model.errors import PenstockError
from penstock.model.store_errors import StoreFull, StoreUnavailable

WORTH_ANOTHER_TRY = 1
BAD_SPEC = 2
REPLACE_ME = 75
"""The exit code of a process that did nothing wrong and wants to be replaced at once."""
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


async def start(module: str, spec: bytes, *arguments: str, pass_fds: Sequence[int] = ()) -> Process:
    """Run a module in a process of its own, which reads from its input what it is to do.

    Everybody on a machine can read the arguments of a process, and the URL of a store may hold a
    password.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, "-", *arguments),
        stdin=PIPE,
        pass_fds=pass_fds,
        start_new_session=True,
    )
    assert child.stdin is not None
    with suppress(ConnectionError):  # it died at once, which its exit code will tell
        child.stdin.write(spec)
        await child.stdin.drain()
    child.stdin.close()
    return child


def spec_text() -> str:
    """What this process was started to do: its first argument, or its input if that is `-`."""
    return sys.stdin.read() if sys.argv[1] == "-" else sys.argv[1]


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
