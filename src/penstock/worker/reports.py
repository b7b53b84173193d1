"""What running handlers say, gathered and written in batches."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from penstock.client.context import Context
from penstock.model.errors import PenstockError
from penstock.service import Seldom
from penstock.store.contract import Report, Store
from penstock.worker.notify import notify

if TYPE_CHECKING:
    from penstock.client.app import Penstock

log = structlog.get_logger("penstock.worker")

FLUSH_SECONDS = 0.25
MAX_LINES = 1_000
MAX_UNWRITTEN = 1_000


class Reports:
    """Buffers the reports of all executions; safe to fill from any thread."""

    def __init__(self, app: "Penstock", owner: str) -> None:
        self.app = app
        self._store: Store = app.store
        self.owner = owner
        self._waiting: dict[str, JobReporter] = {}
        self._unwritten: list[Report] = []
        self._progress: list[tuple[Context, float, str | None]] = []
        self._may_warn = Seldom()

    def note(self, reporter: "JobReporter") -> None:
        """Remember that an execution has something to say."""
        self._waiting[reporter.job_id] = reporter

    def last_words(self, job_id: str) -> Report | None:
        """What an execution said and nobody has written yet; to be written before it is settled."""
        reporter = self._waiting.pop(job_id, None)
        return None if reporter is None else reporter.take()

    async def flush(self) -> None:
        """Write what was said since the last flush, and tell the progress hooks."""
        waiting, self._waiting = self._waiting, {}
        new = [report for reporter in waiting.values() if (report := reporter.take())]
        reports, self._unwritten = self._unwritten + new, []
        if reports:
            try:
                await self.write(reports)
            except PenstockError:
                self._unwritten = reports[-MAX_UNWRITTEN:]
                raise
        made, self._progress = self._progress, []
        for progress in made:
            await notify(self.app.hooks.progress, *progress)

    def progressed(self, context: Context, percent: float, message: str | None) -> None:
        """Have the progress hooks told at the next flush."""
        if self.app.hooks.progress:
            self._progress.append((context, percent, message))

    async def write(self, reports: list[Report]) -> None:
        """Write reports; a stale lease's words are dropped with it."""
        await self._store.jobs.report(self.owner, reports)

    async def run(self) -> None:
        """Flush a few times a second until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except Exception as error:
                self._warn(error)

    def _warn(self, error: Exception) -> None:
        if self._may_warn():
            log.warning("report_failed", worker_id=self.owner, error=str(error))


class JobReporter:
    """The `Reporter` of a handler that runs in this process."""

    __slots__ = ("_fence", "_lines", "_progress", "_reports", "context", "job_id")

    def __init__(self, reports: Reports, job_id: str, fence: int) -> None:
        self._reports = reports
        self._fence = fence
        self._progress: tuple[float, str | None] | None = None
        self._lines: list[tuple[int, str, str]] = []
        self.job_id = job_id
        self.context: Context | None = None

    def now(self) -> int:
        """The store's wall clock."""
        return self._reports.app.store.clock.now()

    def progress(self, percent: float, message: str | None) -> None:
        """Keep the latest progress."""
        self._progress = (percent, message)
        self._reports.note(self)

    def log(self, level: str, message: str) -> None:
        """Keep a line, up to a bound."""
        if len(self._lines) < MAX_LINES:
            self._lines.append((self.now(), level, message))
            self._reports.note(self)

    async def checkpoint(self, value: str) -> None:
        """Write a checkpoint, with all that was said before it."""
        report = self.take() or Report(id=self.job_id, fence=self._fence)
        await self._reports.write([msgspec.structs.replace(report, checkpoint=value)])

    async def enqueue(self, prepared: Any) -> Any:
        """Enqueue a child, or a flow of them, of this job."""
        return await self._reports.app.enqueue(prepared, force=True)

    def take(self) -> Report | None:
        """What has not been written yet."""
        progress, self._progress = self._progress, None
        lines, self._lines = self._lines, []
        if progress is None and not lines:
            return None
        percent, message = progress or (None, None)
        if percent is not None and self.context is not None:
            self._reports.progressed(self.context, percent, message)
        return Report(
            id=self.job_id,
            fence=self._fence,
            progress_percent=percent,
            progress_message=message,
            logs=lines,
        )
