"""Long work that somebody asks the server for: it goes on there, and its progress can be read.

It runs in the process that was asked, and what it has done is in the store, so every process can
tell. All of it may be asked for again: a rebuild or an archive that broke off goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.not_found import NotFound
from penstock.model.redact import redact
from penstock.store.contract.metrics import DAY_MS

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract.records import Record

log = structlog.get_logger("penstock.events")

KIND = "events_work"
TOLD_SECONDS = 1.0
SILENT_MS = 30_000
"""Work of which nothing was heard for so long has ended with its process."""
KEPT_MS = 30 * DAY_MS
LONGEST_ERROR = 1_000

Tell = Callable[[int, int | None], None]
"""Hears how much is done, and of how much, if that is known."""


class NoSuchWork(NotFound):
    """Work that nobody has asked for, or long ago."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Nobody has asked for the work {name!r} in the last month.")


class StillRunning(InvalidOption):
    """Work that goes on already."""

    def __init__(self, name: str) -> None:
        super().__init__("work", name, "one that does not go on already")
        self.name = name
        self.args = (f"The work {name!r} goes on already; read how far it is, and wait for it.",)


class WorkFailed(PenstockError):
    """Work that a server was asked for and that has not been done."""

    def __init__(self, name: str, state: str, error: str | None) -> None:
        self.name = name
        self.state = state
        why = error or "ask for it again, and it goes on where it was"
        super().__init__(f"The work {name!r} is {state}: {why.rstrip('.')}.")


class Work(Struct, frozen=True, kw_only=True):
    """How far some work is: `running`, `done`, `failed` or `stopped`; times are UTC milliseconds.

    `total` is None where nobody counts beforehand. One that was stopped, or whose process ended,
    is asked for again.
    """

    name: str
    state: str
    done: int
    total: int | None
    started_at: int
    updated_at: int
    error: str | None = None


class Background:
    """`app.events.background`: start work, and read how far it is."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, name: str, work: Callable[[Tell], Awaitable[int]]) -> Work:
        """Begin `await work(tell)`, which says at the end how much it did, unless it goes on."""
        record = await self._app.store.records.get(KIND, name)
        if record is not None and self._read(record).state == "running":
            raise StillRunning(name)
        now = self._app.store.clock.now()
        begun = Work(name=name, state="running", done=0, total=None, started_at=now, updated_at=now)
        if not await self._write(begun, 0 if record is None else record.revision):
            raise StillRunning(name)
        task = asyncio.create_task(self._run(begun, work), name=f"penstock-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return begun

    async def get(self, name: str) -> Work:
        """How far it is; NoSuchWork if nobody asked for it."""
        record = await self._app.store.records.get(KIND, name)
        if record is None:
            raise NoSuchWork(name)
        return self._read(record)

    async def close(self) -> None:
        """Stop what goes on; whoever reads of it is told."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, begun: Work, work: Callable[[Tell], Awaitable[int]]) -> None:
        told = begun

        def tell(done: int, total: int | None) -> None:
            nonlocal told
            told = replace(told, done=done, total=total)

        async def keep_telling() -> None:
            while True:
                await asyncio.sleep(TOLD_SECONDS)
                await self._write(told)

        telling = asyncio.create_task(keep_telling())
        try:
            done = await work(tell)
            told = replace(told, done=done, state="done")
        except asyncio.CancelledError:
            told = replace(told, state="stopped")
            raise
        except Exception as error:
            log.warning("events_work_failed", work=begun.name, error=redact(str(error)))
            told = replace(told, state="failed", error=_told(error))
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            await self._write(told)

    async def _write(self, work: Work, revision: int | None = None) -> bool:
        now = self._app.store.clock.now()
        text = encode(replace(work, updated_at=now)).decode()
        records = self._app.store.records
        written = await records.put(KIND, work.name, text, revision=revision, expires_in_ms=KEPT_MS)
        return written is not None

    def _read(self, record: "Record") -> Work:
        work = decode(record.document, type=Work)
        silent = self._app.store.clock.now() - work.updated_at > SILENT_MS
        return replace(work, state="stopped") if work.state == "running" and silent else work


def _told(error: Exception) -> str:
    """What callers may hear of an error: ours say what to do, and others are in the log."""
    text = str(error) if isinstance(error, PenstockError) else type(error).__name__
    return redact(text)[:LONGEST_ERROR]
