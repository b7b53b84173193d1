"""Between a thread that works step by step and the event loop that has the caller's connection."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """The caller no longer waits for the answer."""


class Bridge:
    """Lets a thread of its own work for a coroutine, and run coroutines for that work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._step: asyncio.Task[Any] | None = None
        self.interrupted = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the caller runs on."""
        return self._loop

    async def work(self, work: Callable[[], T]) -> T:
        """Have a thread do it; returns when it is done or, if cancelled, has been undone."""
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()
        # Not one of a pool: it may wait for a lock that another's work in the pool would free.
        threading.Thread(
            target=_fulfil, args=(done, work), name="penstock-join", daemon=True
        ).start()
        waiting = asyncio.wrap_future(done)
        cancelled: asyncio.CancelledError | None = None
        while not waiting.done():
            try:
                await asyncio.wait([waiting])
            except asyncio.CancelledError as error:
                cancelled = error
                self._interrupt()
        if cancelled is not None:
            waiting.exception()
            raise cancelled
        return waiting.result()

    def run(self, step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """From the thread: run a coroutine that may be given up, and wait for it."""
        if self.interrupted:
            raise Interrupted
        return self._run(step, can_be_given_up=True)

    def run_surely(self, step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """From the thread: run one that leaves the connection in order."""
        return self._run(step, can_be_given_up=False)

    def _run(self, step: Callable[[], Coroutine[Any, Any, T]], *, can_be_given_up: bool) -> T:
        done: Future[T] = Future()

        def begin() -> None:
            task = self._loop.create_task(step())
            self._step = task if can_be_given_up else None
            task.add_done_callback(lambda task: _hand_over(task, done))

        self._loop.call_soon_threadsafe(begin)
        return done.result()

    def _interrupt(self) -> None:
        self.interrupted = True
        if self._step is not None:
            self._step.cancel()


def _fulfil(done: "Future[T]", work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:
        done.set_exception(error)


def _hand_over(task: "asyncio.Task[T]", done: "Future[T]") -> None:
    if task.cancelled():
        done.set_exception(Interrupted())
        return
    error = task.exception()
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())
