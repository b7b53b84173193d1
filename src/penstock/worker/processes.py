"""Processes for jobs: a pool kept warm for CPU work, and one of its own for every suspect.

A process can be killed, so here a timeout is hard; and when one dies under its job, only that
job is blamed.
"""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from penstock.client.job_type import JobType
from penstock.model.errors import PenstockError
from penstock.model.job import Lease
from penstock.worker.protocol import (
    HEADER,
    Checkpoint,
    FromChild,
    Log,
    Progress,
    Raised,
    Ready,
    Returned,
    Run,
    Saved,
    Stop,
    Target,
    frame,
    from_child,
)
from penstock.worker.reports import JobReporter


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
    """One child process and the socket to it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    async def start(cls) -> "JobProcess":
        """Start a child and wait until it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            # Not from a thread of a pool: the child would be told to end when that thread ends.
            process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-m", "penstock.worker.child", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                start_new_session=True,
            )
        child = cls(process)
        ours.setblocking(False)
        try:
            child._reader, child._writer = await asyncio.open_connection(sock=ours)
            if not isinstance(await child._next(), Ready):
                raise ProcessDied(await asyncio.to_thread(child._exit_code))
        except BaseException:
            child.kill()
            raise
        return child

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it now, with whatever it runs."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def request_stop(self) -> None:
        """Tell the handler that somebody asked it to stop."""
        if self._writer is not None:
            self._writer.write(frame(Stop()))

    async def close(self) -> None:
        """End it and collect what is left of it."""
        self.kill()
        if self._writer is not None:
            self._writer.close()
        await asyncio.to_thread(self._process.wait)

    async def run(self, run: Run, reporter: JobReporter) -> Returned:
        """Run a lease; raises what the handler raised, or ProcessDied."""
        assert self._writer is not None
        self._writer.write(frame(run))
        while True:
            match await self._next():
                case Progress(run.number, percent, message):
                    reporter.progress(percent, message)
                case Log(run.number, level, message):
                    reporter.log(level, message)
                case Checkpoint(run.number, value):
                    await reporter.checkpoint(value)
                    self._writer.write(frame(Saved()))
                case Progress() | Log():
                    continue  # late words of an earlier job
                case Checkpoint():
                    self._writer.write(frame(Saved()))
                case Returned(run.number) as returned:
                    return returned
                case Raised(run.number) as raised:
                    raise _revived(raised)
                case _:
                    raise ProcessDied(await asyncio.to_thread(self._exit_code))

    async def _next(self) -> FromChild | None:
        assert self._reader is not None
        try:
            size = int.from_bytes(await self._reader.readexactly(HEADER), "big")
            return from_child.decode(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def _exit_code(self) -> int | None:
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return None


class Processes:
    """The pool: at most `size` warm children, and single-use ones beside it."""

    def __init__(self, size: int) -> None:
        self._slots = asyncio.Semaphore(size)
        self._numbers = count(1)
        self._idle: list[JobProcess] = []
        self._busy: dict[str, JobProcess] = {}

    async def run(
        self,
        type_: JobType[..., ..., Any],
        lease: Lease,
        reporter: JobReporter,
        *,
        alone: bool,
        ready: Callable[[], None],
    ) -> Returned:
        """Run a lease in a warm child, or alone in a fresh one; `ready` is called as it begins."""
        run = Run(next(self._numbers), target_of(type_), lease)
        if alone:
            child = await JobProcess.start()
            ready()
            return await self._run_in(child, run, reporter, keep=False)
        async with self._slots:
            child = self._idle.pop() if self._idle else await JobProcess.start()
            ready()
            return await self._run_in(child, run, reporter, keep=True)

    def kill(self, job_id: str) -> bool:
        """Kill the process a job runs in; false when it has none yet."""
        if job_id not in self._busy:
            return False
        self._busy[job_id].kill()
        return True

    def request_stop(self, job_id: str) -> None:
        """Tell the handler of a job that somebody asked it to stop."""
        if job_id in self._busy:
            self._busy[job_id].request_stop()

    async def close(self) -> None:
        """End all children."""
        children = [*self._idle, *self._busy.values()]
        self._idle.clear()
        for child in children:
            await child.close()

    async def _run_in(
        self, child: JobProcess, run: Run, reporter: JobReporter, *, keep: bool
    ) -> Returned:
        self._busy[run.lease.id] = child
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
            del self._busy[run.lease.id]
            if finished and keep and child.alive:
                self._idle.append(child)
            else:
                await child.close()


def target_of(type_: JobType[..., ..., Any]) -> Target:
    """Where a child finds this handler."""
    module, qualname = type_.function.__module__, type_.function.__qualname__
    main_path = None
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        if spec is not None:
            module = spec.name
        else:
            main_path = os.path.abspath(str(main.__file__))
    return Target(module, qualname, main_path, type_.app.settings.url)


def can_run_in_process(type_: JobType[..., ..., Any]) -> bool:
    """Whether a child could import this handler: not one made inside a function or a shell."""
    function = type_.function
    if "<locals>" in function.__qualname__:
        return False
    return function.__module__ != "__main__" or hasattr(sys.modules["__main__"], "__file__")


def _revived(raised: Raised) -> BaseException:
    if raised.error:
        error = pickle.loads(raised.error)
        if isinstance(error, BaseException):
            error.add_note(f"In the job's process:\n{raised.stack}")
            return error
    revived = HandlerError(raised.text)
    revived.add_note(f"In the job's process:\n{raised.stack}")
    return revived
