"""Names the handler that blocks the event loop, while it does, from a thread of its own."""

import asyncio
import gc
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import PurePath
from types import FrameType

import structlog

from penstock.logs import shows_tracebacks
from penstock.model.failure import is_application, is_library
from penstock.model.redact import redact
from penstock.worker import execution
from penstock.worker.job_log import about
from penstock.worker.running import Running

log = structlog.get_logger("penstock.worker")

BLOCKED_SECONDS = 1.0
LOOK_SECONDS = 0.25
AGAIN_SECONDS = (10.0, 60.0, 300.0)
"""A block that goes on is told of again after so long, and then every last of these."""
CURE = "make the handler a plain function, which runs in a thread, or give it run_in='process'"


class LoopWatch:
    """Looks at the event loop from outside, and says who blocks it: once, then seldom.

    `note` is called in its thread with the execution and a remark about it when a block was seen,
    and with neither when it is over.
    """

    def __init__(
        self,
        owner: str,
        running: Callable[[], Iterable[Running]],
        note: Callable[[Running | None, str | None], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner = owner
        self._running = running
        self._note = note
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._ticked_at = clock()
        self._told_after = 0.0
        self.is_blocked = False
        """Whether a handler is known to block the loop now."""
        self._is_over = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-loop-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def tick(self) -> None:
        """Note that the event loop goes round."""
        now = self._clock()
        blocked, self._ticked_at = now - self._ticked_at, now
        if self._told_after:
            self._told_after = 0.0
            self.is_blocked, self._is_over = False, self._is_over or self.is_blocked
            log.warning("loop_free_again", worker_id=self._owner, seconds=round(blocked, 1))

    def look(self) -> None:
        """Say who blocks the event loop, if it is time to say so."""
        if self._is_over:
            self._is_over = False
            self._note(None, None)
        blocked = self._clock() - self._ticked_at
        if blocked < BLOCKED_SECONDS or blocked < self._next_telling():
            return
        self._told_after = blocked
        frame = frame_of(self._loop_thread)
        whole = [] if frame is None else list(traceback.extract_stack(frame))
        stack = of_handler(whole)
        where = _place(stack or whole[-1:])
        guilty = self._guilty() if stack else None
        facts = {"worker_id": self._owner}
        if guilty is not None:
            facts = about(guilty.lease, self._owner) | {"cure": CURE}
        if shows_tracebacks():
            facts["exception"] = redact("".join(traceback.format_list(stack))).rstrip()
        log.warning("loop_blocked", **facts, seconds=round(blocked, 1), where=where)
        if guilty is not None and not self.is_blocked:
            self.is_blocked = True
            self._note(guilty, f"The handler blocks the event loop at {where}; {CURE}.")

    def _next_telling(self) -> float:
        if not self._told_after:
            return BLOCKED_SECONDS
        later = (each for each in AGAIN_SECONDS if each > self._told_after)
        return next(later, self._told_after + AGAIN_SECONDS[-1])

    def _guilty(self) -> Running | None:
        """The execution whose task is at work in the loop; of another task, nobody's."""
        task = asyncio.current_task(self._loop)
        return next((each for each in self._running() if each.task is task), None)

    def _run(self) -> None:
        looked_at = self._clock()
        while not self._stopping.wait(LOOK_SECONDS):
            before, looked_at = looked_at, self._clock()
            if looked_at - before < BLOCKED_SECONDS:  # else the whole process was frozen
                self.look()


_one_at_a_time = threading.Lock()


def frame_of(thread: int) -> FrameType | None:
    """Where a thread is.

    Python up to 3.11 holds a lock while it looks, and stands still for ever if the garbage that it
    collects meanwhile wants the same one.
    """
    with _one_at_a_time:
        collects = gc.isenabled()
        gc.disable()
        try:
            frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        finally:
            if collects:
                gc.enable()
    return frames.get(thread)


def of_handler(stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames from the outermost one of a handler on; none if the worker itself is at work.

    A worker that starts a process for a handler may be held up on a busy machine, too.
    """
    called = max((n for n, frame in enumerate(stack) if frame.filename == EXECUTION), default=-1)
    inside = stack[called + 1 :]
    theirs = (n for n, frame in enumerate(inside) if not _is_ours(frame.filename))
    first = next(theirs, None)
    return [] if first is None else inside[first:]


def _is_ours(filename: str) -> bool:
    return filename.startswith(_FOLDER) or is_library(filename)


EXECUTION = execution.__file__
_FOLDER = str(PurePath(__file__).parent)


def _place(stack: list[traceback.FrameSummary]) -> str:
    """The innermost line of the application in words: `tasks.py:12, in ship: time.sleep(5)`."""
    own = [frame for frame in stack if is_application(frame.filename)] or list(stack)
    if not own:
        return "an unknown place"
    frame = own[-1]
    line = f": {redact(frame.line)}" if frame.line else ""
    return f"{PurePath(frame.filename).name}:{frame.lineno}, in {frame.name}{line}"
