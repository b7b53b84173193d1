"""Threads for sync handlers. One that outlives its timeout is abandoned: nothing can kill it."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Work = tuple[Callable[[], Any], "asyncio.Future[tuple[Any, int]]", asyncio.AbstractEventLoop]


class Threads:
    """Daemon threads made when needed and kept for the next job."""

    def __init__(self) -> None:
        self.abandoned = 0
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._free = 0
        self._made = 0
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> tuple[Any, int]:
        """Call in a thread; the value and the milliseconds of CPU it took."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Any, int]] = loop.create_future()
        context = contextvars.copy_context()
        self._reserve()
        self._work.put((lambda: context.run(function), future, loop))
        try:
            return await future
        except asyncio.CancelledError:
            self.abandoned += 1
            raise

    def close(self) -> None:
        """End the idle threads; those still running end with the process."""
        for _ in range(self._made):
            self._work.put(None)

    def _reserve(self) -> None:
        """See that for every work in the queue there is a thread that has no other."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            self._made += 1
            name = f"penstock-job-{self._made}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            self._run(*item)

    def _run(
        self,
        function: Callable[[], Any],
        future: "asyncio.Future[tuple[Any, int]]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        before = time.thread_time_ns()
        try:
            value = function()
        except BaseException as error:
            outcome: tuple[Any, int] | BaseException = error
        else:
            outcome = (value, (time.thread_time_ns() - before) // 1_000_000)
        with self._lock:
            self._free += 1
        try:
            loop.call_soon_threadsafe(self._deliver, future, outcome)
        except RuntimeError:  # the worker stopped meanwhile
            return

    def _deliver(
        self, future: "asyncio.Future[tuple[Any, int]]", outcome: tuple[Any, int] | BaseException
    ) -> None:
        if future.cancelled():
            self.abandoned -= 1
        elif isinstance(outcome, StopIteration):
            future.set_exception(RuntimeError(f"the handler raised {outcome!r}"))
        elif isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
