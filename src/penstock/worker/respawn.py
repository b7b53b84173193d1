"""Keeping processes alive: how one is started and told what to do, and when it is started again."""

import asyncio
import os
import signal
import sys
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic

import structlog

from penstock.model.errors import PenstockError
from penstock.model.store_errors import StoreFull, StoreUnavailable

log = structlog.get_logger("penstock.supervisor")

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


class KeptChild(ABC):
    """A process that is replaced when it has ended, until it is told to stop."""

    stop_seconds = 10.0
    """One that hangs is killed after so long, which loses nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._child: Process | None = None
        self._stopping = asyncio.Event()
        self._exit_code = 0

    @abstractmethod
    async def start_child(self, *, again: bool) -> Process:
        """Start it, for the first time or again."""

    async def run(self) -> int:
        """Keep it alive until stopped; 2 when it can never start."""
        await keep(self._run_once, self._stopping)
        return self._exit_code

    def stop(self) -> None:
        """End it."""
        self._stopping.set()
        if self._child is not None and self._child.returncode is None:
            tell(self._child, signal.SIGTERM)
            asyncio.get_running_loop().call_later(self.stop_seconds, self.kill)

    def kill(self) -> None:
        """End it at once."""
        self._stopping.set()
        if self._child is not None and self._child.returncode is None:
            tell(self._child, signal.SIGKILL)

    async def _run_once(self) -> bool:
        """Run it until it ends; whether it is to be replaced."""
        if self._stopping.is_set():
            return False
        code = await self._run_child()
        while code == REPLACE_ME and not self._stopping.is_set():
            code = await self._run_child()
        if self._stopping.is_set() or code == BAD_SPEC:
            self._exit_code = 0 if code == REPLACE_ME else code
            return False
        log.error(f"{self._name}_died", exit_code=code)
        return True

    async def _run_child(self) -> int:
        self._child = await self.start_child(again=self._child is not None)
        if self._stopping.is_set():
            self.stop()
        return await self._child.wait()


def tell(child: Process, number: signal.Signals) -> None:
    """Send a signal to a process that may have ended a moment ago.

    Its own `send_signal` would look whether it has, and so take its exit code away from whoever
    waits for it: asyncio then says 255.
    """
    with suppress(ProcessLookupError):
        os.kill(child.pid, number)


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
