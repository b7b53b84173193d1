"""One execution as a visible pipeline: decode, call, judge, tell. The body is the documentation."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import structlog

from penstock.app import tracing
from penstock.app.context import Context
from penstock.app.penstock import Penstock
from penstock.model.failure import Failure
from penstock.model.outcome import (
    Cancel,
    Completed,
    Crashed,
    Failed,
    Outcome,
    Settlement,
    Snooze,
)
from penstock.model.retry import ErrorClass
from penstock.worker.handler_log import HandlerLog, keep_with_job, running_here
from penstock.worker.memory import ExecutionMemory
from penstock.worker.notify import Hook, is_being_cancelled, notify
from penstock.worker.processes import ProcessDied, Processes
from penstock.worker.reports import JobReporter, Reports
from penstock.worker.resources import Resources
from penstock.worker.running import Running, StopReason
from penstock.worker.target import NotFoundInProcess
from penstock.worker.threads import Threads
from penstock.worker.verdict import Encoded, Verdict

log = structlog.get_logger("penstock.worker")


class Executor:
    """Runs leases in the event loop, in threads or in processes, and judges how they ended."""

    def __init__(self, app: Penstock, reports: Reports, processes: int) -> None:
        self.threads = Threads()
        self.processes = Processes(app, processes)
        self.resources = Resources()
        self._memory = ExecutionMemory()
        self._app = app
        self._clock = app.store.clock
        self._hooks = app.hooks
        self._reports = reports
        self._loop = asyncio.get_running_loop()
        self._max_snoozes = app.settings.max_snoozes
        self._hook_seconds = app.settings.hook_timeout
        self._only_here: set[str] = set()
        self.look_for_tracing()
        self._handler_log = HandlerLog(
            app.settings.job_log_level,
            app.types.values(),
            keep_with_job(self, self._context_of),
        )
        self._handler_log.install()

    async def close(self) -> None:
        """Let go of threads, processes and resources."""
        self._handler_log.remove()
        self.threads.close()
        self._memory.close()
        await self.processes.close()
        await self.resources.close()

    def look_for_tracing(self) -> None:
        """Notice that the application has set up tracing; to ask for every job costs."""
        self._is_traced = tracing.tracer() is not None

    def note(self, running: Running, words: str) -> None:
        """Keep a warning of ours with a job; from any thread."""
        self._context_of(running).log(words, "warning")

    def run(self, running: Running) -> Awaitable[Settlement | None]:
        """Execute a lease; None when the lease was lost and nothing is left to settle."""
        if not self._is_traced:
            return self._run(running)
        return tracing.traced(running.lease, self._reports.owner, lambda: self._run(running))

    async def _run(self, running: Running) -> Settlement | None:
        settlement: Settlement | None
        usage = _Usage()
        running.executor = self
        running_here.set(running)
        try:
            if self._hooks.start or running.type.hooks.start:
                await self._tell(running, [*self._hooks.start, *running.type.hooks.start])
                running.begin(self._clock.monotonic())
            self._memory.enter(running, running.lease.type)
            try:
                value = await self._call(running, usage)
            finally:
                self._note_memory(running, usage)
            if isinstance(value, Outcome):
                raise value
            settlement = self._completed(running, value, usage)
            hooks: Sequence[Hook] = self._hooks.complete
            of_type: Sequence[Hook] = running.type.hooks.complete
        except BaseException as raised:
            value = self._cause(running, raised)
            settlement = self._judge(running, value, self._verdict(running, usage))
            is_failure = self._is_failure(running, value)
            hooks = self._hooks.failed if is_failure else ()
            of_type = running.type.hooks.failed if is_failure else ()
        running.settlement = settlement
        if (hooks or of_type) and settlement is not None:
            await self._tell_the_end(running, [*hooks, *of_type], value)
        return settlement

    def _call(self, running: Running, usage: "_Usage") -> Awaitable[Any]:
        """Decode the arguments and call the handler, by the shortest way it allows."""
        lease, type_ = running.lease, running.type
        arguments = type_.arguments.decode(lease.id, lease.payload)
        if type_.is_plain and not lease.rescues and not self._hooks.middleware:
            called: Awaitable[Any] = type_.arguments.call(None, arguments, {})
            return called
        return self._call_with_context(running, arguments, usage)

    async def _call_with_context(
        self, running: Running, arguments: msgspec.Struct, usage: "_Usage"
    ) -> Any:
        type_ = running.type
        context = self._context_of(running)
        injected = type_.arguments.injected
        resources = await self.resources.fill(injected) if injected else {}

        async def handle() -> Any:
            if self._wants_process(running):
                try:
                    return await self._in_process(running, usage)
                except NotFoundInProcess as error:
                    self._keep_here(running, error)
            if type_.is_async:
                return await type_.arguments.call(context, arguments, resources)
            call = type_.arguments.call
            value, usage.cpu_ms = await self.threads.run(
                lambda: call(context, arguments, resources)
            )
            return value

        if not self._hooks.middleware:
            return await handle()
        return await self._with_middleware(running, context, handle)

    def _context_of(self, running: Running) -> Context:
        if running.context is None:
            with self._reports.lock:  # a handler may say its first words in several threads
                reporter = JobReporter(self._reports, running.lease.id, running.lease.fence)
                app = running.type.app
                reporter.context = Context(
                    running.lease, reporter, self._loop, app, self._reports.owner
                )
                reporter.hooks = running.type.hooks.progress
                if running.context is None:
                    running.reporter, running.context = reporter, reporter.context
        return running.context

    def _wants_process(self, running: Running) -> bool:
        """Whether it asks for a process, or was running when a worker died and gets its own."""
        asked = running.type.run_in == "process" or running.lease.rescues > 0
        return asked and running.lease.type not in self._only_here

    def _keep_here(self, running: Running, error: NotFoundInProcess) -> None:
        """Run a type in this process from now on: it has to end somewhere."""
        self._only_here.add(running.lease.type)
        log.warning("process_impossible", job_type=running.lease.type, error=str(error))
        running.begin(self._clock.monotonic())

    async def _in_process(self, running: Running, usage: "_Usage") -> Any:
        assert running.reporter is not None
        running.deadline = None  # its time begins when a process is ready for it
        running.interrupt = lambda: self.processes.kill(running.lease)
        try:
            returned = await self.processes.run(
                tracing.handed_on(running.lease),
                running.reporter,
                alone=running.lease.rescues > 0,
                ready=lambda: running.begin(self._clock.monotonic()),
            )
        finally:
            running.interrupt = None
        usage.cpu_ms, usage.memory_kb = returned.cpu_ms, returned.memory_kb
        return Encoded(returned.result)

    async def _with_middleware(
        self, running: Running, context: Context, handle: Callable[[], Awaitable[Any]]
    ) -> Any:
        async def plain() -> Any:
            value = await handle()
            return running.type.decode_result(value.text) if isinstance(value, Encoded) else value

        call: Callable[[], Awaitable[Any]] = plain
        for middleware in reversed(self._hooks.middleware):
            call = _around(middleware, context, call)
        return await call()

    def _note_memory(self, running: Running, usage: "_Usage") -> None:
        here = self._memory.leave(running, running.lease.type)
        if usage.memory_kb is None and not self.threads.abandoned:
            usage.memory_kb = here

    def _cause(self, running: Running, raised: BaseException) -> BaseException:
        """What a handler's end is put down to."""
        if running.reason is StopReason.TIMEOUT:
            seconds = running.lease.timeout_ms / 1000
            return TimeoutError(f"The handler did not finish within {seconds:g} s.")
        if running.reason is not None:
            return raised
        if isinstance(raised, asyncio.CancelledError):
            if is_being_cancelled():
                raise raised
            return RuntimeError("The handler raised CancelledError though nobody cancelled it.")
        return raised

    def _judge(self, running: Running, error: BaseException, verdict: Verdict) -> Settlement | None:
        """Decide what becomes of a job whose handler did not return; nothing later changes it."""
        match running.reason:
            case StopReason.LOST:
                return None
            case StopReason.SHUTDOWN:
                return verdict.handed_back()
            case StopReason.CANCEL:
                return verdict.cancelled("cancelled while it ran")
            case None if running.cancel_at is not None:
                return verdict.cancelled("cancelled while it ran")
            case None if isinstance(error, ProcessDied):
                return verdict.crashed(Failure.of(error, ErrorClass.POISON))
            case _:
                return self._weigh(error, verdict)

    def _weigh(self, error: BaseException, verdict: Verdict) -> Settlement:
        try:
            return verdict.of_error(error, self._max_snoozes)
        except BaseException as broken:  # Snooze("soon"), or an exception whose text raises
            kind = type(error).__name__
            reason = RuntimeError(f"The handler ended with a broken {kind}: {broken!r}")
            return verdict.of_error(reason, self._max_snoozes)

    def _is_failure(self, running: Running, error: BaseException) -> bool:
        stopped = running.reason not in (None, StopReason.TIMEOUT)
        return not (stopped or isinstance(error, Snooze | Cancel))

    async def _tell(self, running: Running, hooks: Sequence[Hook], *said: Any) -> None:
        context = self._context_of(running)
        whole = int(len(hooks) * self._hook_seconds * 1000)
        running.deadline = self._clock.monotonic() + whole
        await notify(hooks, context, *said, seconds=self._hook_seconds)

    async def _tell_the_end(self, running: Running, hooks: Sequence[Hook], said: Any) -> None:
        """Tell the hooks, in a time of their own; whatever ends them, the verdict stands."""
        running.judged()
        self._context_of(running).will_retry = _is_retried(running)
        if isinstance(said, Encoded):
            said = running.type.decode_result(said.text)
        try:
            await self._tell(running, hooks, said)
        except asyncio.CancelledError:
            if running.reason is None:
                raise
            log.warning("hooks_abandoned", job_id=running.lease.id, job_type=running.lease.type)

    def _completed(self, running: Running, value: Any, usage: "_Usage") -> Completed:
        lease = running.lease
        encoded = isinstance(value, Encoded)
        return Completed(
            id=lease.id,
            fence=lease.fence,
            type=lease.type,
            queue=lease.queue,
            started_at=running.started_at,
            wait_ms=max(0, running.started_at - lease.queued_at),
            duration_ms=self._clock.monotonic() - running.began_at,
            cpu_ms=usage.cpu_ms,
            memory_kb=usage.memory_kb,
            attempts=lease.attempts,
            tenant_id=lease.tenant_id,
            result=value.text if encoded else running.type.encode_result(value),
        )

    def _verdict(self, running: Running, usage: "_Usage") -> Verdict:
        return Verdict(
            running.type,
            running.lease,
            now=self._clock.now(),
            started_at=running.started_at,
            duration_ms=self._clock.monotonic() - running.began_at,
            cpu_ms=usage.cpu_ms,
            memory_kb=usage.memory_kb,
        )


class _Usage:
    """What an execution used, as far as it can be known."""

    __slots__ = ("cpu_ms", "memory_kb")

    def __init__(self) -> None:
        self.cpu_ms: int | None = None
        self.memory_kb: int | None = None


def _is_retried(running: Running) -> bool:
    settlement = running.settlement
    if isinstance(settlement, Crashed):
        return running.lease.rescues + 1 < settlement.max_rescues
    return isinstance(settlement, Failed)


def _around(
    middleware: Callable[..., Awaitable[Any]], context: Context, call: Callable[[], Awaitable[Any]]
) -> Callable[[], Awaitable[Any]]:
    return lambda: middleware(context, call)
