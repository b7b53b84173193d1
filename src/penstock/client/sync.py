"""One thin synchronous façade: every call runs on a background event loop of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.handle import JobHandle
    from penstock.client.job_type import Prepared
    from penstock.model.job import Job
    from penstock.model.states import Status

T = TypeVar("T")
R = TypeVar("R")


class SyncPenstock:
    """`app.sync`: for scripts, Django views and anything else without an event loop."""

    def __init__(self, app: "Penstock") -> None:
        self.app = app
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def enqueue(
        self, prepared: "Prepared[R]", *, connection: object | None = None
    ) -> "JobHandle[R]":
        """Enqueue a call made with `new`; durable when this returns."""
        return self.run(self.app.enqueue(prepared, connection=connection))

    def enqueue_many(
        self, prepared: "Sequence[Prepared[R]]", *, connection: object | None = None
    ) -> "list[JobHandle[R]]":
        """Enqueue all of them in one transaction, or none."""
        return self.run(self.app.enqueue_many(prepared, connection=connection))

    def get(self, job_id: str) -> "Job":
        """The job, or JobNotFound."""
        return self.run(self.app.get(job_id))

    def find(self, **where: Any) -> "list[Job]":
        """A page of jobs, newest first."""
        return self.run(self.app.find(**where))

    def result(self, handle: "JobHandle[R]", timeout: float | None = None) -> R:
        """Wait for a job's value."""
        return self.run(handle.result(timeout))

    def cancel(self, job_id: str, reason: str = "cancelled by the caller") -> "Status":
        """Cancel a waiting job, or ask a running one to stop."""
        return self.run(self.app.cancel(job_id, reason))

    def requeue(self, job_id: str) -> "Job":
        """Run a cancelled or dead job again."""
        return self.run(self.app.requeue(job_id))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run any other coroutine on the background loop: `app.sync.run(app.logs(job.id))`."""
        return asyncio.run_coroutine_threadsafe(work, self._started()).result()

    def close(self) -> None:
        """Close the store and end the background loop; a later call starts it again."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self.app.close(), loop).result()
            self._end(loop)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=loop.run_forever, name="penstock-sync", daemon=True
                )
                self._thread.start()
                try:
                    asyncio.run_coroutine_threadsafe(self.app.open(), loop).result()
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
