"""What running handlers say, gathered and written in batches."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from penstock.app.context import Context, Hook, Progress
from penstock.model.errors import PenstockError
from penstock.model.outcome import Settlement
from penstock.model.wording import counted
from penstock.service import Seldom
from penstock.store.contract import Report, Store
from penstock.worker.notify import notify

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.worker")

FLUSH_SECONDS = 0.25
FLUSH_LINES = 500
"""So many lines of one execution are written at once, without waiting for the next flush."""
MAX_LINES = 10_000
"""What is kept of one execution until it is written; more is dropped, and said so."""

Key = tuple[str, int]
NOTHING_SAID = Progress(None)


class Reports:
    """Buffers the reports of all executions; safe to fill from any thread.

    Executions are told apart by id and fence: a lost lease and its successor may both be here.
    """

    def __init__(self, app: "Penstock", owner: str) -> None:
        self.app = app
        # Anything may log in the middle of this: an object that is freed here has a `__del__`.
        self.lock = threading.RLock()
        self.owner = owner
        self._store: Store = app.store
        self._waiting: dict[Key, JobReporter] = {}
        self._unwritten: dict[Key, list[Report]] = {}
        self._progress: list[tuple[Context, Progress, Sequence[Hook]]] = []
        self._may_warn = Seldom()
        self._early: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def note(self, reporter: "JobReporter") -> None:
        """Remember that an execution has something to say; called under the lock."""
        self._waiting[reporter.key] = reporter

    def flush_early(self) -> None:
        """Have what was said written now; from any thread."""
        if self._early is not None:
            loop, event = self._early
            loop.call_soon_threadsafe(event.set)

    def last_words(self, settlements: Iterable[Settlement]) -> list[Report]:
        """What nobody has written yet of executions that are about to be settled."""
        if not (self._waiting or self._unwritten):
            return []
        return self._take([(each.id, each.fence) for each in settlements])

    def put_back(self, reports: Sequence[Report]) -> None:
        """Keep reports that could not be written for the next try."""
        dropped: list[tuple[str, int]] = []
        with self.lock:
            for report in reports:
                self._unwritten.setdefault((report.id, report.fence), []).append(report)
            excess = sum(len(r.logs) for kept in self._unwritten.values() for r in kept)
            while excess > MAX_LINES:
                oldest = self._unwritten.pop(next(iter(self._unwritten)))
                lines = sum(len(report.logs) for report in oldest)
                excess -= lines
                dropped.append((oldest[0].id, lines))
        for job_id, lines in dropped:
            log.warning("lines_dropped", job_id=job_id, lines=lines)

    async def flush(self) -> None:
        """Write what was said since the last flush, and tell the progress hooks."""
        reports = self._take(None)
        if reports:
            try:
                await self.write(reports)
            except PenstockError:
                self.put_back(reports)
                raise
        made, self._progress = self._progress, []
        seconds = self.app.settings.hook_timeout
        for context, progress, of_type in made:
            told = (progress.percent, progress.message)
            await notify(self.app.hooks.progress, context, *told, seconds=seconds)
            if of_type:
                await notify(of_type, context, progress.value, seconds=seconds)

    def progressed(self, context: Context, progress: Progress, of_type: Sequence[Hook]) -> None:
        """Have the progress hooks told at the next flush."""
        if self.app.hooks.progress or of_type:
            self._progress.append((context, progress, of_type))

    async def write(self, reports: Sequence[Report]) -> None:
        """Write reports; a stale lease's words are dropped with it."""
        await self._store.jobs.report(self.owner, reports)

    async def run(self) -> None:
        """Flush a few times a second until cancelled."""
        full = asyncio.Event()
        self._early = (asyncio.get_running_loop(), full)
        while True:
            try:
                async with asyncio.timeout(FLUSH_SECONDS):
                    await full.wait()
            except TimeoutError:
                pass
            full.clear()
            try:
                await self.flush()
            except Exception as error:
                self._warn(error)

    def _take(self, keys: Iterable[Key] | None) -> list[Report]:
        """Take the words of these executions, or of all."""
        taken: list[Report] = []
        with self.lock:
            for key in dict.fromkeys([*self._unwritten, *self._waiting]) if keys is None else keys:
                taken += self._unwritten.pop(key, ())
                reporter = self._waiting.pop(key, None)
                report = None if reporter is None else reporter.take()
                if report is not None:
                    taken.append(report)
        return taken

    def _warn(self, error: Exception) -> None:
        if self._may_warn():
            log.warning("report_failed", worker_id=self.owner, error=str(error))


class JobReporter:
    """The `Reporter` of a handler that runs in this process."""

    __slots__ = ("_dropped", "_lines", "_progress", "_reports", "context", "hooks", "key")

    def __init__(self, reports: Reports, job_id: str, fence: int) -> None:
        self._reports = reports
        self._progress: Progress | None = None
        self._lines: list[tuple[int, str, str]] = []
        self._dropped = 0
        self.key = (job_id, fence)
        self.context: Context | None = None
        self.hooks: Sequence[Hook] = ()
        """Those of its type that hear of progress."""

    def now(self) -> int:
        """The store's wall clock."""
        return self._reports.app.store.clock.now()

    def progress(self, progress: Progress) -> None:
        """Keep the latest progress."""
        with self._reports.lock:
            self._progress = progress
            self._reports.note(self)

    def log(self, level: str, message: str) -> None:
        """Keep a line, up to a bound."""
        line = (self.now(), level, message)
        with self._reports.lock:
            if len(self._lines) < MAX_LINES:
                self._lines.append(line)
            else:
                self._dropped += 1
            self._reports.note(self)
            full = len(self._lines) == FLUSH_LINES
        if full:
            self._reports.flush_early()

    async def checkpoint(self, value: str) -> None:
        """Write a checkpoint, with all that was said before it."""
        job_id, fence = self.key
        with self._reports.lock:
            said = self.take()
        report = said or Report(id=job_id, fence=fence)
        try:
            await self._reports.write([msgspec.structs.replace(report, checkpoint=value)])
        except PenstockError:
            if said is not None:
                self._reports.put_back([said])
            raise

    async def enqueue(self, prepared: Any) -> Any:
        """Enqueue a child, or a flow of them, of this job."""
        return await self._reports.app.enqueue(prepared, force=True)

    def take(self) -> Report | None:
        """What has not been written yet; called under the lock."""
        progress, self._progress = self._progress, None
        lines, self._lines = self._lines, []
        if self._dropped:
            missing = f"{counted(self._dropped, 'line')} dropped: more came than could be written"
            lines.append((lines[-1][0], "warning", missing))
            self._dropped = 0
        if progress is None and not lines:
            return None
        if progress is not None and self.context is not None:
            self._reports.progressed(self.context, progress, self.hooks)
        job_id, fence = self.key
        said = progress or NOTHING_SAID
        return Report(
            id=job_id,
            fence=fence,
            progress_percent=said.percent,
            progress_message=said.message,
            progress=said.document,
            logs=lines,
        )
