"""What a handler knows of its own execution, and what is called around it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import msgspec

from penstock.app.arguments import encode
from penstock.model.clock import utc
from penstock.model.errors import InvalidOption, PayloadTooLarge
from penstock.model.job import Lease
from penstock.model.redact import redact, redact_document

if TYPE_CHECKING:
    from penstock.app.flow import Flow, FlowHandle
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import Prepared
    from penstock.app.penstock import Penstock

R = TypeVar("R")
MAX_CHECKPOINT = 1_048_576
MAX_PROGRESS = 4_000
"""Characters of an object, as JSON text."""

LEVELS = ("debug", "info", "warning", "error")


def cleaned(message: object) -> str:
    """A line as it is kept with a job: without secrets, and bounded."""
    return redact(str(message))[:4000]


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a job is: in percent, in words, and as the object that says more, as JSON text."""

    percent: float | None
    message: str | None = None
    document: str | None = None

    @property
    def value(self) -> Any:
        """What the handler said: an object, or a number."""
        return self.percent if self.document is None else msgspec.json.decode(self.document)


class Reporter(Protocol):
    """Takes what a context says to the store."""

    def now(self) -> int:
        """The store's wall clock, in milliseconds since the epoch."""
        ...

    def progress(self, progress: Progress) -> None:
        """Remember the latest progress; written soon."""
        ...

    def log(self, level: str, message: str) -> None:
        """Keep a line; written soon."""
        ...

    async def checkpoint(self, value: str) -> None:
        """Write a checkpoint; durable when this returns."""
        ...

    async def enqueue(self, prepared: Any) -> Any:
        """Enqueue a child, or a flow of them."""
        ...


class Context:
    """The first argument of a handler that asks for it."""

    __penstock_context__ = True

    def __init__(
        self,
        job: Lease,
        reporter: Reporter,
        loop: asyncio.AbstractEventLoop | None = None,
        app: "Penstock | None" = None,
        worker: str | None = None,
    ) -> None:
        self.job = job
        self.worker = worker
        """The id of the worker that runs it; None in a process of its own."""
        self._app = app
        self._reporter = reporter
        self._loop = loop
        self._stop_requested = False
        self._checkpoint: str | None = job.checkpoint
        self.will_retry = False
        """In a hook `on_failed`: whether the job is to be tried again."""

    @property
    def id(self) -> str:
        """The job's id."""
        return self.job.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1; snoozes and rescues do not count."""
        return self.job.attempts + 1

    @property
    def fence(self) -> int:
        """The number that proves the lease; pass it to systems that can refuse older ones."""
        return self.job.fence

    @property
    def idempotency_key(self) -> str:
        """The same for every execution of this job: its unique key, or else its id."""
        return self.job.key or self.job.id

    @property
    def now(self) -> datetime:
        """The time in UTC by the store's clock, which a test may move."""
        return utc(self._reporter.now())

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the job to stop; check it between steps and return early."""
        return self._stop_requested

    @property
    def checkpoint(self) -> Any:
        """What an earlier execution, or this one, saved with `save_checkpoint`; None at first."""
        return None if self._checkpoint is None else msgspec.json.decode(self._checkpoint)

    @cached_property
    def sync(self) -> "SyncContext":
        """The awaitable methods for handlers that are plain functions."""
        return SyncContext(self)

    def progress(self, progress: float | Mapping[str, Any], message: str | None = None) -> None:
        """Tell how far the job is: 0 to 100, or an object: `{"phase": "load", "percent": 5}`.

        An object is kept as it is. Its `percent`, and its `message` or else its `phase`, are shown
        wherever those of a number would be.
        """
        if not isinstance(progress, Mapping):
            self._reporter.progress(Progress(_percent(progress), _words(message)))
            return
        percent = progress.get("percent")
        said = message or progress.get("message") or progress.get("phase")
        self._reporter.progress(
            Progress(
                None if percent is None else _percent(percent), _words(said), _document(progress)
            )
        )

    def log(self, message: str, level: str = "info") -> None:
        """Keep a line with the job; secrets in it are redacted."""
        if level not in LEVELS:
            raise InvalidOption("level", level, f"one of: {', '.join(LEVELS)}")
        self._reporter.log(level, cleaned(message))

    async def save_checkpoint(self, value: Any) -> None:
        """Save where the job has got to; a retry or a rescue finds it in `checkpoint`."""
        text = self._encode_checkpoint(value)
        await self._reporter.checkpoint(text)
        self._checkpoint = text

    @overload
    async def enqueue(self, prepared: "Prepared[R]") -> "JobHandle[R]": ...
    @overload
    async def enqueue(self, prepared: "Flow[R]") -> "FlowHandle[R]": ...

    async def enqueue(self, prepared: Any) -> Any:
        """Enqueue a child, or a flow of them: `await ctx.enqueue(resize.new("a.png", 100))`."""
        return await self._reporter.enqueue(prepared.child_of(self.job))

    @property
    def app(self) -> "Penstock":
        """The application, for what the context does not offer itself.

        It is open, but for a plain function in a process of its own; `async with ctx.app` is right
        everywhere.
        """
        if self._app is None:
            raise InvalidOption("context", self.id, "that of a job that a worker runs")
        return self._app

    async def transact(self, work: Callable[[Any], R]) -> R:
        """Do `work(tx)` in one commit, like `app.transact`, wherever the job runs."""
        async with self.app as app:
            return await app.transact(work)

    async def read(self, question: Callable[[Any], R]) -> R:
        """Ask `question(tx)` of tables, like `app.read`, wherever the job runs."""
        async with self.app as app:
            return await app.read(question)

    def _encode_checkpoint(self, value: Any) -> str:
        try:
            text = encode(value)
        except (TypeError, ValueError) as error:
            raise InvalidOption("checkpoint", value, "something JSON can hold") from error
        if len(text) > MAX_CHECKPOINT:
            raise PayloadTooLarge(self.job.type, len(text), MAX_CHECKPOINT, "checkpoint")
        return text

    def request_stop(self) -> None:
        """Set `cancelled`; the worker calls this."""
        self._stop_requested = True

    def wait_in_thread(self, start: Callable[[], Any]) -> Any:
        """Run a coroutine on the worker's event loop and wait for it in this thread."""
        if self._loop is None:
            return asyncio.run(start())
        return asyncio.run_coroutine_threadsafe(start(), self._loop).result()


def _percent(value: Any) -> float:
    try:
        percent = float(value)
    except (TypeError, ValueError):
        percent = -1.0
    if not 0 <= percent <= 100:
        raise InvalidOption("percent", value, "a number from 0 to 100")
    return percent


def _words(message: object) -> str | None:
    return None if message is None else redact(str(message))[:500]


def _document(progress: Mapping[str, Any]) -> str:
    try:
        text = redact_document(encode(progress))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidOption("progress", progress, "something JSON can hold") from error
    if len(text) > MAX_PROGRESS:
        raise InvalidOption("progress", f"{len(text):,} characters", f"at most {MAX_PROGRESS:,}")
    return text


class SyncContext:
    """`ctx.sync`: blocking twins of the context's awaitable methods."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def save_checkpoint(self, value: Any) -> None:
        """Save where the job has got to."""
        self._context.wait_in_thread(lambda: self._context.save_checkpoint(value))

    def transact(self, work: Callable[[Any], R]) -> R:
        """Do `work(tx)` in one commit."""
        done: R = self._context.wait_in_thread(lambda: self._context.transact(work))
        return done

    def read(self, question: Callable[[Any], R]) -> R:
        """Ask `question(tx)` of the tables of extensions."""
        answer: R = self._context.wait_in_thread(lambda: self._context.read(question))
        return answer

    @overload
    def enqueue(self, prepared: "Prepared[R]") -> "JobHandle[R]": ...
    @overload
    def enqueue(self, prepared: "Flow[R]") -> "FlowHandle[R]": ...

    def enqueue(self, prepared: Any) -> Any:
        """Enqueue a child, or a flow of them."""
        return self._context.wait_in_thread(lambda: self._context.enqueue(prepared))


CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Context, CallNext], Awaitable[Any]]
Hook = Callable[..., Any]
H = TypeVar("H", bound=Hook)
M = TypeVar("M", bound=Middleware)


class Hooks:
    """What the application hangs around its jobs, in the order it was registered."""

    def __init__(self) -> None:
        self.middleware: list[Middleware] = []
        self.start: list[Hook] = []
        self.complete: list[Hook] = []
        self.failed: list[Hook] = []
        self.progress: list[Hook] = []

    def add_middleware(self, function: M) -> M:
        """Wrap every execution: `async def timed(ctx, call_next): return await call_next()`."""
        self.middleware.append(function)
        return function

    def on_start(self, hook: H) -> H:
        """Call `hook(ctx)` before a handler runs."""
        self.start.append(hook)
        return hook

    def on_complete(self, hook: H) -> H:
        """Call `hook(ctx, result)` after a handler returned a value."""
        self.complete.append(hook)
        return hook

    def on_failed(self, hook: H) -> H:
        """Call `hook(ctx, error)` after a handler raised; what becomes of the job is decided."""
        self.failed.append(hook)
        return hook

    def on_progress(self, hook: H) -> H:
        """Call `hook(ctx, percent, message)` when a handler's progress is written."""
        self.progress.append(hook)
        return hook
