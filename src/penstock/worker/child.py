"""The process of a job: reads a lease, runs its handler, says how it went, reads the next.

Run as `python -m penstock.worker.child FD`. When the worker at the other end of the socket is
gone the process ends at once: no job outlives its worker.
"""

import asyncio
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from penstock.app import context as contexts
from penstock.app import tracing
from penstock.app.context import Context, cleaned
from penstock.app.job_type import JobType
from penstock.model.failure import stack_of
from penstock.model.outcome import Outcome
from penstock.worker.child_process import hear, parent
from penstock.worker.handler_log import HandlerLog
from penstock.worker.memory import PeakMemory
from penstock.worker.protocol import (
    Application,
    Checkpoint,
    FromChild,
    Log,
    NotFound,
    Progress,
    Raised,
    Ready,
    Returned,
    Run,
    Saved,
    Stop,
    frame,
    to_child,
)
from penstock.worker.resources import Resources
from penstock.worker.target import NotFoundInProcess, find_type

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


class Child:
    """One job at a time, in this process's main thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.RLock()
        self._unsent: deque[bytes] = deque()
        self._is_sending = False
        self._runs: SimpleQueue[Run] = SimpleQueue()
        self._saved: SimpleQueue[Saved] = SimpleQueue()
        self._context: Context | None = None
        self._application: Application | None = None
        self._handler_log: HandlerLog | None = None
        self._types: dict[str, JobType[..., ..., Any]] = {}
        self._opened: Penstock | None = None
        self._memory = PeakMemory()
        self._pid = os.getpid()

    def serve(self) -> None:
        """Run leases until the worker goes away."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave_it_to_the_worker)
        threading.Thread(target=self._listen, daemon=True).start()
        self.send(Ready())
        with asyncio.Runner() as runner:
            resources = Resources()
            while True:
                run = self._next_run(runner)
                self.send(self._attempt(runner, resources, run))

    def send(self, message: FromChild) -> None:
        """Say something to the worker; a fork of this process has nothing to say to it."""
        if os.getpid() != self._pid:
            os._exit(0)
        with self._sending:
            self._unsent.append(frame(message))
            if self._is_sending:
                return  # logged in the middle of another message, by an object that was freed
            self._is_sending = True
            try:
                while self._unsent:
                    self._connection.sendall(self._unsent.popleft())
            finally:
                self._is_sending = False

    def save(self, number: int, value: str) -> None:
        """Have a checkpoint written; returns when it is durable."""
        self.send(Checkpoint(number, value))
        self._saved.get()

    def _next_run(self, runner: asyncio.Runner) -> Run:
        if self._opened is None:
            return self._runs.get()
        # A store that is open hears of changes, and must not leave them unread.
        return runner.run(asyncio.to_thread(self._runs.get))

    def _attempt(self, runner: asyncio.Runner, resources: Resources, run: Run) -> FromChild:
        before = time.process_time()
        self._memory.reset()
        try:
            type_ = self._find(run.lease.type)
            value = self._call(runner, resources, type_, run)
            if isinstance(value, Outcome):
                raise value
            result = type_.encode_result(value)
            return Returned(run.number, result, _cpu_ms(before), self._memory.kb())
        except NotFoundInProcess as error:
            return NotFound(run.number, str(error))
        except BaseException as error:
            stack = stack_of(error)
            used = (_cpu_ms(before), self._memory.kb())
            name = type(error).__name__
            return Raised(run.number, _pickled(error), name, str(error), stack, *used)

    def _call(
        self, runner: asyncio.Runner, resources: Resources, type_: JobType[..., ..., Any], run: Run
    ) -> Any:
        arguments = type_.arguments.decode(run.lease.id, run.lease.payload)
        reporter = ChildReporter(self, type_, run.number)
        context = Context(run.lease, reporter, app=type_.app)
        self._context = context
        self._listen_to_logging(type_, run.number)
        filled = runner.run(resources.fill(type_.arguments.injected))
        call = type_.arguments.call
        before = run.lease.trace_context
        if type_.is_async:
            return runner.run(
                self._await(type_.app, lambda: call(context, arguments, filled), before)
            )
        if self._opened is not None:  # another event loop could not use what this one opened
            runner.run(self._keep_open(None))
        with tracing.continued(before):
            return call(context, arguments, filled)

    async def _await(
        self, app: "Penstock", handle: Callable[[], Awaitable[Any]], before: str | None
    ) -> Any:
        await self._keep_open(app)
        return await tracing.continuing(before, handle())

    async def _keep_open(self, app: "Penstock | None") -> None:
        """Have this application open, as it is in a worker, and no other."""
        if self._opened is app:
            return
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()
        if app is not None:
            await app.open()
            self._opened = app

    def _listen_to_logging(self, type_: JobType[..., ..., Any], number: int) -> None:
        """Pass on what is logged while this job runs; the worker keeps and shows it."""
        if self._handler_log is not None:
            self._handler_log.remove()
        self._handler_log = HandlerLog(
            type_.app.settings.job_log_level,
            type_.app.types.values(),
            lambda level, text, logger: self.send(Log(number, level, cleaned(text), logger)),
        )
        self._handler_log.install()

    def _find(self, name: str) -> JobType[..., ..., Any]:
        if name not in self._types:
            assert self._application is not None
            application = self._application
            self._types[name] = find_type(application.places, application.settings, name)
        return self._types[name]

    def _listen(self) -> None:
        try:
            self._hear_all()
        finally:
            os._exit(1)  # a child that cannot hear its worker any more is of no use

    def _hear_all(self) -> None:
        while True:
            match to_child.decode(hear(self._connection)):
                case Application() as application:
                    self._application = application
                case Run() as run:
                    self._runs.put(run)
                case Saved() as saved:
                    self._saved.put(saved)
                case Stop():
                    if self._context is not None:
                        self._context.request_stop()


class ChildReporter:
    """The `Reporter` of a handler that runs in a process of its own."""

    def __init__(self, child: Child, type_: JobType[..., ..., Any], number: int) -> None:
        self._child = child
        self._type = type_
        self._number = number

    def now(self) -> int:
        """The wall clock of the application's store, as this process opens it."""
        return self._type.app.store.clock.now()

    def progress(self, progress: contexts.Progress) -> None:
        """Pass progress on to the worker."""
        self._child.send(Progress(self._number, progress))

    def log(self, level: str, message: str) -> None:
        """Pass a line on to the worker."""
        self._child.send(Log(self._number, level, message))

    async def checkpoint(self, value: str) -> None:
        """Have the worker write a checkpoint."""
        await asyncio.to_thread(self._child.save, self._number, value)

    async def enqueue(self, prepared: Any) -> Any:
        """Enqueue a child, or a flow of them, through this process's own connection."""
        async with self._type.app as app:
            return await app.enqueue(prepared, force=True)


def _leave_it_to_the_worker(*_: object) -> None:
    """A signal to the whole group must not look like a job that killed its process."""


def _pickled(error: BaseException) -> bytes:
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        return b""
    return data


def _cpu_ms(before: float) -> int:
    return int((time.process_time() - before) * 1000)


if __name__ == "__main__":
    Child(parent()).serve()
