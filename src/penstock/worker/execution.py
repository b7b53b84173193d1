"""One execution as a visible pipeline: decode, call, judge. The body is the documentation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from penstock.client import tracing
from penstock.client.app import Penstock
from penstock.client.context import Context
from penstock.model.failure import Failure
from penstock.model.outcome import Cancel, Outcome, Snooze
from penstock.model.retry import ErrorClass
from penstock.model.settlement import Completed, Settlement
from penstock.worker.notify import notify
from penstock.worker.processes import ProcessDied, Processes, can_run_in_process
from penstock.worker.reports import JobReporter, Reports
from penstock.worker.resources import Resources
from penstock.worker.running import Running, StopReason
from penstock.worker.threads import Threads
from penstock.worker.verdict import Encoded, Verdict


class Executor:
    """Runs leases in the event loop, in threads or in processes, and judges how they ended."""

    def __init__(self, app: Penstock, reports: Reports, processes: int) -> None:
        self.threads = Threads()
        self.processes = Processes(processes)
        self.resources = Resources()
        self._app = app
        self._clock = app.store.clock
        self._hooks = app.hooks
        self._reports = reports
        self._loop = asyncio.get_running_loop()
        self._max_snoozes = app.settings.max_snoozes

    async def close(self) -> None:
        """Let go of threads, processes and resources."""
        self.threads.close()
        await self.processes.close()
        await self.resources.close()

    def run(self, running: Running) -> Awaitable[Settlement | None]:
        """Execute a lease; None when the lease was lost and nothing is left to settle."""
        if tracing.tracer() is None:
            return self._run(running)
        return tracing.traced(running.lease, self._reports.owner, lambda: self._run(running))

    async def _run(self, running: Running) -> Settlement | None:
        usage = _Usage()
        try:
            value = await self._call(running, usage)
            if isinstance(value, Outcome):
                raise value
            return self._completed(running, value, usage)
        except asyncio.CancelledError:
            if running.reason is not None:
                return await self._stopped(running, self._verdict(running, usage))
            if _is_being_cancelled():
                raise
            error = RuntimeError("The handler raised CancelledError though nobody cancelled it.")
            return await self._judge(running, error, self._verdict(running, usage))
        except BaseException as error:
            return await self._judge(running, error, self._verdict(running, usage))

    def _call(self, running: Running, usage: "_Usage") -> Awaitable[Any]:
        """Decode the arguments and call the handler, by the shortest way it allows."""
        lease, type_ = running.lease, running.type
        arguments = type_.arguments.decode(lease.id, lease.payload)
        if type_.is_plain and not lease.rescues and not self._hooks.used:
            called: Awaitable[Any] = type_.arguments.call(None, arguments, {})
            return called
        return self._call_with_context(running, arguments, usage)

    async def _call_with_context(
        self, running: Running, arguments: msgspec.Struct, usage: "_Usage"
    ) -> Any:
        lease, type_ = running.lease, running.type
        reporter = JobReporter(self._reports, lease.id, lease.fence)
        context = Context(lease, reporter, self._loop)
        running.context = reporter.context = context
        resources = (
            await self.resources.fill(type_.arguments.injected) if type_.arguments.injected else {}
        )

        async def handle() -> Any:
            if type_.run_in == "process" or self._is_suspect(running):
                return await self._in_process(running, reporter, usage)
            if type_.is_async:
                return await type_.arguments.call(context, arguments, resources)
            call = type_.arguments.call
            value, usage.cpu_ms = await self.threads.run(
                lambda: call(context, arguments, resources)
            )
            return value

        if not self._hooks.used:
            return await handle()
        return await self._with_hooks(running, context, handle)

    def _is_suspect(self, running: Running) -> bool:
        """A job that was running when a worker died runs next in a process of its own."""
        return running.lease.rescues > 0 and can_run_in_process(running.type)

    async def _in_process(self, running: Running, reporter: JobReporter, usage: "_Usage") -> Any:
        running.deadline = None  # its time begins when a process is ready for it
        running.interrupt = lambda: self.processes.kill(running.lease.id)
        try:
            returned = await self.processes.run(
                running.type,
                tracing.handed_on(running.lease),
                reporter,
                alone=self._is_suspect(running),
                ready=lambda: running.begin(self._clock.monotonic()),
            )
        finally:
            running.interrupt = None
        usage.cpu_ms, usage.memory_kb = returned.cpu_ms, returned.memory_kb
        return Encoded(returned.result)

    async def _with_hooks(
        self, running: Running, context: Context, handle: Callable[[], Awaitable[Any]]
    ) -> Any:
        await notify(self._hooks.start, context)

        async def plain() -> Any:
            value = await handle()
            return running.type.decode_result(value.text) if isinstance(value, Encoded) else value

        call: Callable[[], Awaitable[Any]] = plain
        for middleware in reversed(self._hooks.middleware):
            call = _around(middleware, context, call)
        value = await call()
        if isinstance(value, Outcome):
            raise value
        encoded = Encoded(running.type.encode_result(value))
        await notify(self._hooks.complete, context, value)
        return encoded

    async def _judge(
        self, running: Running, error: BaseException, verdict: Verdict
    ) -> Settlement | None:
        if running.reason is not None:
            return await self._stopped(running, verdict)
        if isinstance(error, SystemExit | KeyboardInterrupt):
            error = RuntimeError(f"The handler raised {error!r}.")
        if not isinstance(error, Snooze | Cancel):
            await self._tell_failed(running, error)
        if running.cancel_at is not None:
            return verdict.cancelled("cancelled while it ran")
        if isinstance(error, ProcessDied):
            return verdict.crashed(Failure.of(error, ErrorClass.POISON))
        return self._weigh(error, verdict)

    def _weigh(self, error: BaseException, verdict: Verdict) -> Settlement:
        try:
            return verdict.of_error(error, self._max_snoozes)
        except BaseException as broken:  # Snooze("soon"), or an exception whose text raises
            kind = type(error).__name__
            reason = RuntimeError(f"The handler ended with a broken {kind}: {broken!r}")
            return verdict.of_error(reason, self._max_snoozes)

    async def _tell_failed(self, running: Running, error: BaseException) -> None:
        if running.context is not None and self._hooks.failed:
            await notify(self._hooks.failed, running.context, error)

    async def _stopped(self, running: Running, verdict: Verdict) -> Settlement | None:
        match running.reason:
            case StopReason.TIMEOUT:
                seconds = running.lease.timeout_ms / 1000
                error = TimeoutError(f"The handler did not finish within {seconds:g} s.")
                await self._tell_failed(running, error)
                return self._weigh(error, verdict)
            case StopReason.CANCEL:
                return verdict.cancelled("cancelled while it ran")
            case StopReason.SHUTDOWN:
                return verdict.handed_back()
            case _:
                return None

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


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _around(
    middleware: Callable[..., Awaitable[Any]], context: Context, call: Callable[[], Awaitable[Any]]
) -> Callable[[], Awaitable[Any]]:
    return lambda: middleware(context, call)
