"""Processes for jobs: a pool kept warm for CPU work, and one of its own for every suspect.

A process can be killed, so here a timeout is hard; and when one dies under its job, only that
job is blamed.
"""

import asyncio
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from itertools import count
from typing import Any

from penstock.app.penstock import Penstock
from penstock.model.errors import PenstockError
from penstock.model.failure import STACK_OF_PROCESS
from penstock.model.job import Lease
from penstock.worker.child_process import ChildProcess
from penstock.worker.handler_log import show
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
    ToChild,
    encode,
    from_child,
)
from penstock.worker.reports import JobReporter
from penstock.worker.target import NotFoundInProcess, main_module, places_of


class ProcessDied(PenstockError):
    """The process running a job ended without an answer."""

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code
        how = "vanished"
        if exit_code is not None and exit_code < 0:
            how = f"was killed by {signal.Signals(-exit_code).name}"
        elif exit_code is not None:
            how = f"exited with code {exit_code}"
        super().__init__(f"The process of the job {how} while the job ran.")


class HandlerError(PenstockError):
    """An exception of a handler that could not be carried over from its process."""


class JobProcess:
    """One child process for jobs."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child

    @classmethod
    async def start(cls, application: Application) -> "JobProcess":
        """Start a child and wait until it is ready."""
        process = cls(await ChildProcess.start("penstock.worker.child"))
        try:
            if not isinstance(await process._next(), Ready):
                raise ProcessDied(await process._child.exit_code())
            process._say(application)
        except BaseException:
            process.kill()
            raise
        return process

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._child.alive

    def kill(self) -> None:
        """End it now, with whatever it runs."""
        self._child.kill()

    def request_stop(self) -> None:
        """Tell the handler that somebody asked it to stop."""
        self._say(Stop())

    async def close(self) -> None:
        """End it and collect what is left of it."""
        await self._child.close()

    async def run(self, run: Run, reporter: JobReporter) -> Returned:
        """Run a lease; raises what the handler raised, ProcessDied or NotFoundInProcess."""
        self._say(run)
        while True:
            match await self._next():
                case Progress(run.number, progress):
                    reporter.progress(progress)
                case Log(run.number) as line:
                    reporter.log(line.level, line.message)
                    show(line.logger, line.level, line.message, run.lease)
                case Checkpoint(run.number, value):
                    await reporter.checkpoint(value)
                    self._say(Saved())
                case Progress() | Log():
                    continue  # late words of an earlier job
                case Checkpoint():
                    self._say(Saved())
                case Returned(run.number) as returned:
                    return returned
                case Raised(run.number) as raised:
                    raise _revived(raised)
                case NotFound(run.number, reason):
                    raise NotFoundInProcess(reason)
                case _:
                    raise ProcessDied(await self._child.exit_code())

    def _say(self, message: ToChild) -> None:
        self._child.send(encode(message))

    async def _next(self) -> FromChild | None:
        heard = await self._child.receive()
        return None if heard is None else from_child.decode(heard)


class Processes:
    """The pool: at most `size` warm children, and single-use ones beside it."""

    def __init__(self, app: Penstock, size: int) -> None:
        self._app = app
        self._slots = asyncio.Semaphore(size)
        self._numbers = count(1)
        self._idle: list[JobProcess] = []
        self._busy: dict[tuple[str, int], JobProcess] = {}

    async def run(
        self, lease: Lease, reporter: JobReporter, *, alone: bool, ready: Callable[[], None]
    ) -> Returned:
        """Run a lease in a warm child, or alone in a fresh one; `ready` is called as it begins.

        Raises NotFoundInProcess, and nothing has run, where a child does not know the type.
        """
        if not self._application.places:
            raise NotFoundInProcess.nowhere(lease.type)
        run = Run(next(self._numbers), lease)
        if alone:
            child = await JobProcess.start(self._application)
            ready()
            return await self._run_in(child, run, reporter, keep=False)
        async with self._slots:
            child = self._idle.pop() if self._idle else await JobProcess.start(self._application)
            ready()
            return await self._run_in(child, run, reporter, keep=True)

    def kill(self, lease: Lease) -> bool:
        """Kill the process a lease runs in; false when it has none yet."""
        child = self._busy.get((lease.id, lease.fence))
        if child is None:
            return False
        child.kill()
        return True

    def request_stop(self, lease: Lease) -> None:
        """Tell the handler of a lease that somebody asked it to stop."""
        child = self._busy.get((lease.id, lease.fence))
        if child is not None:
            child.request_stop()

    @cached_property
    def _application(self) -> Application:
        return Application(places_of(self._app), self._app.settings)

    async def close(self) -> None:
        """End all children."""
        children = [*self._idle, *self._busy.values()]
        self._idle.clear()
        for child in children:
            await child.close()

    async def _run_in(
        self, child: JobProcess, run: Run, reporter: JobReporter, *, keep: bool
    ) -> Returned:
        # By the fence, too: the successor of a lost lease may run here before it has ended.
        key = (run.lease.id, run.lease.fence)
        self._busy[key] = child
        finished = False
        try:
            returned = await child.run(run, reporter)
            finished = True
            return returned
        except (ProcessDied, asyncio.CancelledError):
            raise
        except BaseException:
            finished = True
            raise
        finally:
            del self._busy[key]
            if finished and keep and child.alive:
                self._idle.append(child)
            else:
                await child.close()


class _Unpickler(pickle.Unpickler):
    """Takes the classes of a script from the script itself, whatever its copy is called."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of that name, as this process knows it."""
        return super().find_class("__main__" if module == main_module() else module, name)


def _revived(raised: Raised) -> BaseException:
    revived: BaseException = type(raised.name, (HandlerError,), {})(raised.text)
    with suppress(Exception):  # of a class that only the child knows, or that cannot be carried
        carried = _Unpickler(BytesIO(raised.error)).load()
        if isinstance(carried, BaseException):
            revived = carried
    revived.add_note(f"In the job's process:\n{raised.stack}")
    with suppress(AttributeError):  # of a class with slots
        setattr(revived, STACK_OF_PROCESS, raised.stack)
    return revived
