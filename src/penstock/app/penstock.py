"""The application: it registers job types and enqueues jobs of them."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from penstock.app.admission import A, Admission, How, estimates
from penstock.app.after import After, Input, add_edges
from penstock.app.blueprint import Blueprint, Registry
from penstock.app.context import H, Hooks, M
from penstock.app.declare import declare
from penstock.app.extensions import Extensions
from penstock.app.flow import Batch, Flow, FlowHandle
from penstock.app.handle import JobHandle
from penstock.app.job_type import JobType, Partial, Prepared
from penstock.app.lookups import check_rows, job_filter
from penstock.app.options import AwaitingFields, with_options
from penstock.app.schedules import ScheduleView, TimeFields, put_call
from penstock.app.sync import SharedLock, SyncPenstock
from penstock.app.transact import read, table_store, transact
from penstock.config import Settings, load_settings
from penstock.model.clock import Clock
from penstock.model.dependency import Edge
from penstock.model.errors import InvalidOption
from penstock.model.explain import Explanation
from penstock.model.job import OPTIONS, Enqueued, Job, NewJob
from penstock.model.not_found import JobNotFound
from penstock.model.options import check_text
from penstock.model.redact import without_password
from penstock.model.states import Status
from penstock.store.contract import Execution, LogLine, Store
from penstock.store.open import open_store

if TYPE_CHECKING:
    from penstock.alerts.alerts import Alerts
    from penstock.app.after import Parent
    from penstock.apps.agents.namespace import Agents
    from penstock.events.consumer import Consumers
    from penstock.events.log import Events
    from penstock.events.series import AllSeries
    from penstock.extension import Extension
    from penstock.operate.check_payloads import Checked, PayloadCheck
    from penstock.operate.controls import Controls
    from penstock.operate.dead import DeadLetters
    from penstock.operate.followers import Followers
    from penstock.operate.jobs import Jobs
    from penstock.operate.schedules import Schedules
    from penstock.store.contract.tables import TableStore

P = ParamSpec("P")
R = TypeVar("R")


class Penstock(Registry):
    """Durable jobs: `app = Penstock("sqlite:///work.db")`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        dispatch: str | None = None,
        tables: str | None = None,
        extensions: "Sequence[Extension | str]" = (),
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__()
        chosen = settings or load_settings()
        self.settings = chosen.replace(url=url, dispatch=dispatch, tables=tables)
        self.target: str | None = None
        """The `module:name` it was loaded from, where another process finds it, too."""
        self.hooks = Hooks()
        self.admission = Admission(self)
        self._clock = clock
        self._openings = 0
        self._opening = SharedLock()
        self.made_tables: set[str] = set()
        """The extensions whose tables were brought up to date since the store was opened."""
        self.extensions = Extensions(self, extensions)

    if TYPE_CHECKING:  # of extensions we ship, an editor knows the names; nothing here loads them
        agents: "Agents"
        alerts: "Alerts"
        consumer: "Consumers"
        events: "Events"
        series: "AllSeries"
    else:

        def __getattr__(self, name: str) -> Any:
            """What an extension calls by its own name: `app.events`."""
            if name.startswith("_") or "extensions" not in self.__dict__:
                raise AttributeError(f"'Penstock' object has no attribute {name!r}")
            return self.extensions.namespace(name)

    @property
    def home(self) -> "Penstock":
        """Calls of its types are enqueued by itself."""
        return self

    @cached_property
    def store(self) -> Store:
        """The store behind the URL; opened by `async with app`."""
        chosen = self.settings
        beside = chosen.dispatch or None  # an empty one takes back what the environment says
        return open_store(
            chosen.url, self._clock, dispatch=beside, allow_volatile=chosen.allow_volatile
        )

    @cached_property
    def beside(self) -> Store | None:
        """The store of tables beside one of jobs that has none, if the settings name one."""
        url = self.settings.tables
        if not url:
            return None
        found = open_store(url, self._clock)
        if self.store.tables is not None or found.tables is None:
            expected = "left out: the store of jobs has tables of its own"
            if found.tables is None:
                expected = "a store with tables: sqlite:///… or postgresql://…"
            raise InvalidOption("tables", without_password(url), expected)
        return found

    def table_store(self, extension: str) -> "TableStore":
        """Where the tables of extensions are; NoTables if there is no place for them."""
        return table_store(self, f"The extension {extension!r}")

    async def transact(self, work: "Callable[[Any], R]") -> R:
        """Do `work(tx)` in one commit: rows of extensions, and the jobs that belong to them.

        `tx.notes.run("add", …)` runs a named query of the extension `notes`; `tx.enqueue(…)`
        enqueues. It may be repeated, so it has no effects outside `tx`, and awaits nothing.
        """
        return await transact(self, work)

    async def read(self, question: "Callable[[Any], R]") -> R:
        """Ask `question(tx)` of the tables of extensions, seeing one state of them throughout."""
        return await read(self, question)

    @cached_property
    def sync(self) -> SyncPenstock:
        """The same methods for code without an event loop."""
        return SyncPenstock(self)

    async def __aenter__(self) -> "Penstock":
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the store; calls nest, and the last close closes."""
        async with self._opening:
            if self._openings == 0:
                self.admission.forget()
                self.made_tables.clear()
                beside = self.beside
                await self.store.open()
                if beside is not None:
                    await self._open_beside(beside)
            self._openings += 1

    async def close(self) -> None:
        """Undo one `open`."""
        async with self._opening:
            if self._openings == 1:
                await self.admission.rates.close()
                await self.extensions.close()
                await self.store.close()
                if self.beside is not None:
                    await self.beside.close()
            self._openings = max(0, self._openings - 1)

    async def _open_beside(self, beside: Store) -> None:
        try:
            await beside.open()
        except BaseException:
            await self.store.close()
            raise

    def default_options(self) -> NewJob:
        """What the settings say of a type whose author says nothing."""
        settings = self.settings
        return with_options(
            super().default_options(),
            timeout=settings.default_timeout,
            max_retries=settings.default_max_retries,
            retry_delay=settings.default_retry_delay,
            backoff=settings.default_backoff,
        )

    def checked(self, options: NewJob) -> NewJob:
        """Refuse options this application's settings do not allow."""
        if options.timeout_ms > self.settings.max_timeout * 1000:
            raise InvalidOption(
                "timeout",
                OPTIONS["timeout"].written(options.timeout_ms),
                f"at most {self.settings.max_timeout:g} s, or raise the setting max_timeout",
            )
        return options

    def include(self, blueprint: Blueprint) -> None:
        """Take in the job types, schedules, limits and breakers of a blueprint, all or none."""
        if not isinstance(blueprint, Blueprint):
            raise InvalidOption("blueprint", blueprint, "a Blueprint")
        blueprint.join(self)

    def middleware(self, function: M) -> M:
        """Wrap every execution: `async def timed(ctx, call_next): return await call_next()`."""
        return self.hooks.add_middleware(function)

    def on_start(self, hook: H) -> H:
        """Call `hook(ctx)` before a handler runs."""
        return self.hooks.on_start(hook)

    def on_complete(self, hook: H) -> H:
        """Call `hook(ctx, result)` after a handler returned a value."""
        return self.hooks.on_complete(hook)

    def on_failed(self, hook: H) -> H:
        """Call `hook(ctx, error)` after a handler raised."""
        return self.hooks.on_failed(hook)

    def on_progress(self, hook: H) -> H:
        """Call `hook(ctx, percent, message)` when a handler's progress is written."""
        return self.hooks.on_progress(hook)

    def admit(self, hook: A) -> A:
        """Ask `hook(jobs)` about every enqueue; it refuses by raising."""
        return self.admission.add_hook(hook)

    @overload
    async def enqueue(self, prepared: Prepared[R], **how: Unpack[How]) -> JobHandle[R]: ...
    @overload
    async def enqueue(self, prepared: Flow[R], **how: Unpack[How]) -> FlowHandle[R]: ...

    async def enqueue(self, prepared: Any, **how: Unpack[How]) -> Any:
        """Enqueue a call made with `new`, or a chain or group of them; durable on return.

        It waits while the queue is full: up to `wait` seconds, or not at all with `wait=False`.
        """
        if type(prepared) is not Prepared or prepared.lacks:
            return (await self.enqueue_many([prepared], **how))[0]
        jobs = [prepared.job]
        [answer] = await self.admission.enqueue(jobs, how)
        [estimate] = estimates(self.admission, jobs, self.store.clock.now())
        return JobHandle(self, answer.id, prepared.type, answer.created, estimate)

    @overload
    async def enqueue_many(
        self, prepared: Sequence[Prepared[R]], **how: Unpack[How]
    ) -> list[JobHandle[R]]: ...
    @overload
    async def enqueue_many(
        self, prepared: Sequence[Prepared[Any] | Flow[Any]], **how: Unpack[How]
    ) -> list[Any]: ...

    async def enqueue_many(self, prepared: Sequence[Any], **how: Unpack[How]) -> list[Any]:
        """Enqueue all of them in one transaction, or none."""
        batch = Batch(prepared)
        jobs = [call.job for call in batch.calls]
        return self._handles(batch, jobs, await self.admission.enqueue(jobs, how))

    def enqueue_now(self, prepared: Sequence[Any], how: How) -> list[Any] | None:
        """Enqueue in the calling thread; None, with nothing done, if that takes an event loop."""
        batch = Batch(prepared)
        jobs = [call.job for call in batch.calls]
        answers = self.admission.enqueue_now(jobs, how)
        return None if answers is None else self._handles(batch, jobs, answers)

    def _handles(
        self, batch: Batch, jobs: Sequence[NewJob], answers: Sequence[Enqueued]
    ) -> list[Any]:
        expected = estimates(self.admission, jobs, self.store.clock.now())
        handles: list[JobHandle[Any]] = [
            JobHandle(self, answer.id, call.type, answer.created, estimate)
            for call, answer, estimate in zip(batch.calls, answers, expected, strict=True)
        ]
        return batch.handles(self, handles)

    async def enqueue_payload(
        self, type_name: str, payload: str = "{}", **options: Unpack[AwaitingFields]
    ) -> JobHandle[Any]:
        """Enqueue by name with arguments as JSON text, checked like any other call."""
        type_ = self.find_type(type_name)
        chosen = self.checked(with_options(type_.defaults, **options))
        return await self.enqueue(type_.from_payload(payload, chosen))

    @cached_property
    def controls(self) -> "Controls":
        """What holds work back: pauses, limits and breakers, changed while everything runs."""
        from penstock.operate.controls import Controls

        return Controls(self)

    @cached_property
    def followers(self) -> "Followers":
        """Who is told what becomes of jobs, and how much waits to be told."""
        from penstock.operate.followers import Followers

        return Followers(self)

    @cached_property
    def schedules(self) -> "Schedules":
        """What is scheduled: look at it, pause, resume, remove, run now."""
        from penstock.operate.schedules import Schedules

        return Schedules(self)

    async def schedule(
        self,
        name: str,
        call: Partial[Any] | JobType[..., ..., Any],
        arguments: Mapping[str, Any] | None = None,
        **times: Unpack[TimeFields],
    ) -> ScheduleView:
        """Enqueue a call again and again: `schedule("nightly", report.new(), cron="0 3 * * *")`.

        Instead of `cron` also `every` (seconds) or `at` (once). `arguments` may hold placeholders.
        """
        return await put_call(self.store, name, call, arguments, times)

    async def declare(self) -> None:
        """Put what the application declares into the store; a worker does it when it starts."""
        await declare(self)

    def connection(self) -> Any:
        """Return a connection (apsw or psycopg) that `enqueue(..., connection=…)` takes."""
        return self.store.connection()

    async def get(self, job_id: str) -> Job:
        """Return the job; raise `JobNotFound` if there is none of this id."""
        jobs = await self.store.reader.get([check_text("job_id", job_id)])
        if not jobs:
            raise JobNotFound(job_id)
        return jobs[0]

    async def get_many(self, ids: Sequence[str]) -> list[Job]:
        """Return the jobs that exist, in the order of their ids."""
        return await self.store.reader.get([check_text("job_id", each) for each in ids])

    def watch(self, *job_ids: str) -> AsyncGenerator[Job, None]:
        """Yield each job now and whenever it changes, until all have ended."""
        return self.store.reader.watch([check_text("job_id", each) for each in job_ids])

    async def find(self, **where: Any) -> list[Job]:
        """Return a page of jobs, newest first: `await app.find(status="failed", type="resize")`."""
        return await self.store.reader.find(job_filter(where))

    async def explain(self, job_id: str) -> Explanation:
        """Return every reason why a job does, or does not, run now, the most important first."""
        return await self._jobs.explain(job_id)

    @cached_property
    def dead(self) -> "DeadLetters":
        """Dead letters in groups: try a few, release the rest, correct arguments, take notes."""
        from penstock.operate.dead import DeadLetters

        return DeadLetters(self)

    async def check_payloads(
        self, *, examples: int = 3, progress: "Checked | None" = None
    ) -> "PayloadCheck":
        """Check, before a deploy, that everything that waits fits this application's types."""
        from penstock.operate.check_payloads import check_payloads

        return await check_payloads(self, examples=examples, progress=progress)

    async def executions(self, job_id: str) -> list[Execution]:
        """Return every execution of a job, oldest first."""
        return await self.store.reader.executions(check_text("job_id", job_id))

    async def logs(self, job_id: str, limit: int = 1000) -> list[LogLine]:
        """Return the latest lines its handler logged, oldest first."""
        return await self.store.reader.logs(check_text("job_id", job_id), check_rows(limit))

    async def handle(self, job_id: str) -> JobHandle[Any]:
        """Return a handle on a job enqueued elsewhere."""
        job = await self.get(job_id)
        return JobHandle(self, job.id, self._types.get(job.type), created=False)

    async def cancel(self, job_id: str, reason: str = "cancelled by the caller") -> Status:
        """Cancel a waiting job, or ask a running one to stop; return its status afterwards."""
        return await self._jobs.cancel(job_id, reason)

    async def cancel_many(
        self, ids: Sequence[str], reason: str = "cancelled by the caller"
    ) -> dict[str, Status]:
        """Cancel jobs that all exist, or none; return each one's status afterwards."""
        return await self._jobs.cancel_all(ids, reason)

    async def add_dependency(
        self, child: "Parent", *parents: "Parent | After | Input | Edge"
    ) -> None:
        """Make a job that has not been queued yet wait for more: `add_dependency(send, fetch)`."""
        await add_edges(self, child, parents)

    async def requeue(self, job_id: str) -> Job:
        """Run a cancelled or dead job again, with a fresh retry budget."""
        return await self._jobs.requeue(job_id)

    async def run_again(self, job_id: str) -> Job:
        """Enqueue a new job with the call of a finished one, and return it."""
        return await self._jobs.run_again(job_id)

    @cached_property
    def _jobs(self) -> "Jobs":
        from penstock.operate.jobs import Jobs

        return Jobs(self)
