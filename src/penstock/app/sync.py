"""One thin synchronous façade: every call runs on a background event loop of its own."""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from penstock.app.handle import Jobs
from penstock.model.errors import InvalidOption, PenstockError

if TYPE_CHECKING:
    from penstock.app.admission import How
    from penstock.app.flow import Flow, FlowHandle
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import JobType, Partial, Prepared
    from penstock.app.penstock import Penstock
    from penstock.app.schedules import ScheduleView, TimeFields
    from penstock.model.job import Job
    from penstock.model.states import Status

T = TypeVar("T")
R = TypeVar("R")

in_work: ContextVar[bool] = ContextVar("in_work", default=False)
"""Set while the function of a unit of work runs, whose commit holds up every other write."""


class SharedLock:
    """A lock for tasks of several event loops, held for a moment and rarely."""

    LOOK_AGAIN_SECONDS = 0.001

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110  # an Event has one loop
            await asyncio.sleep(self.LOOK_AGAIN_SECONDS)

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class Application(Jobs, Protocol):
    """What is done for code without an event loop, by an application here or behind a server."""

    async def open(self) -> None:
        """Make ready."""
        ...

    async def close(self) -> None:
        """Undo one `open`."""
        ...

    async def enqueue_many(self, prepared: Sequence[Any], **how: "Unpack[How]") -> list[Any]:
        """Enqueue all of them in one transaction, or none."""
        ...

    def enqueue_now(self, prepared: Sequence[Any], how: "How") -> list[Any] | None:
        """Enqueue in the calling thread; None, with nothing done, if that takes an event loop."""
        ...

    async def find(self, **where: Any) -> "list[Job]":
        """A page of jobs, newest first."""
        ...

    async def requeue(self, job_id: str) -> "Job":
        """Run a cancelled or dead job again."""
        ...

    async def run_again(self, job_id: str) -> "Job":
        """Enqueue a new job with the call of a finished one, and return it."""
        ...

    async def schedule(
        self,
        name: str,
        call: "Partial[Any] | JobType[..., ..., Any]",
        arguments: Mapping[str, Any] | None = None,
        **times: "Unpack[TimeFields]",
    ) -> "ScheduleView":
        """Enqueue a call again and again."""
        ...


class Sync:
    """Methods of an application that block until they are done."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    @overload
    def enqueue(self, prepared: "Prepared[R]", **how: "Unpack[How]") -> "JobHandle[R]": ...
    @overload
    def enqueue(self, prepared: "Flow[R]", **how: "Unpack[How]") -> "FlowHandle[R]": ...

    def enqueue(self, prepared: Any, **how: "Unpack[How]") -> Any:
        """Enqueue a call made with `new`, or a chain or group of them; durable on return."""
        return self._enqueue([prepared], how)[0]

    @overload
    def enqueue_many(
        self, prepared: "Sequence[Prepared[R]]", **how: "Unpack[How]"
    ) -> "list[JobHandle[R]]": ...
    @overload
    def enqueue_many(
        self, prepared: "Sequence[Prepared[Any] | Flow[Any]]", **how: "Unpack[How]"
    ) -> "list[Any]": ...

    def enqueue_many(self, prepared: Sequence[Any], **how: "Unpack[How]") -> list[Any]:
        """Enqueue all of them in one transaction, or none."""
        return self._enqueue(list(prepared) if isinstance(prepared, Iterator) else prepared, how)

    def _enqueue(self, prepared: Sequence[Any], how: "How") -> list[Any]:
        self._refuse_in_work()
        self._started()
        # In this very thread if it can be: to the event loop and back would cost more than the job.
        handles = self._app.enqueue_now(prepared, how)
        return self.run(self._app.enqueue_many(prepared, **how)) if handles is None else handles

    def get(self, job_id: str) -> "Job":
        """Return the job; raise `JobNotFound` if there is none of this id."""
        return self.run(self._app.get(job_id))

    def get_many(self, ids: Sequence[str]) -> "list[Job]":
        """Return the jobs that exist, in the order of their ids."""
        return self.run(self._app.get_many(ids))

    def find(self, **where: Any) -> "list[Job]":
        """A page of jobs, newest first."""
        return self.run(self._app.find(**where))

    def result(self, handle: "JobHandle[R] | FlowHandle[R]", timeout: float | None = None) -> R:
        """Wait for the value of a job or a flow."""
        return self.run(handle.result(timeout))

    def cancel(self, job_id: str, reason: str = "cancelled by the caller") -> "Status":
        """Cancel a waiting job, or ask a running one to stop."""
        return self.run(self._app.cancel(job_id, reason))

    def cancel_many(
        self, ids: Sequence[str], reason: str = "cancelled by the caller"
    ) -> "dict[str, Status]":
        """Cancel jobs; each one's status afterwards."""
        return self.run(self._app.cancel_many(ids, reason))

    def requeue(self, job_id: str) -> "Job":
        """Run a cancelled or dead job again."""
        return self.run(self._app.requeue(job_id))

    def run_again(self, job_id: str) -> "Job":
        """Enqueue a new job with the call of a finished one, and return it."""
        return self.run(self._app.run_again(job_id))

    def schedule(
        self,
        name: str,
        call: "Partial[Any] | JobType[..., ..., Any]",
        arguments: Mapping[str, Any] | None = None,
        **times: "Unpack[TimeFields]",
    ) -> "ScheduleView":
        """Enqueue a call again and again."""
        return self.run(self._app.schedule(name, call, arguments, **times))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run any other coroutine on the background loop: `app.sync.run(app.logs(job.id))`."""
        try:
            self._refuse_in_work()
            self._refuse_forked()
        except PenstockError:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self._started()).result()

    def _refuse_in_work(self) -> None:
        if in_work.get():
            expected = "left out inside a unit of work, which would wait for itself: use its tx"
            raise InvalidOption("app.sync", "used", expected)

    def _refuse_forked(self) -> None:
        """A fork has this thread only: the event loop would never answer."""
        if self._loop is not None and self._process != os.getpid():
            raise PenstockError(
                "app.sync was used before this process was forked; make the first call after that."
            )

    def close(self) -> None:
        """Close the store and end the background loop; a later call starts it again."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._app.close(), loop).result()
            self._end(loop)

    def _started(self) -> asyncio.AbstractEventLoop:
        return self._loop or self._start()

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._process = os.getpid()
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=loop.run_forever, name="penstock-sync", daemon=True
                )
                self._thread.start()
                try:
                    asyncio.run_coroutine_threadsafe(self._app.open(), loop).result()
                except BaseException:
                    self._end(loop)
                    raise
                self._loop = loop
            return self._loop

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join()
        loop.close()


class SyncPenstock(Sync):
    """`app.sync`: for scripts, Django views and anything else without an event loop."""

    def __init__(self, app: "Penstock") -> None:
        super().__init__(app)
        self.app = app
