"""A worker: one event loop that fetches, executes and settles jobs until it is told to stop."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil
import structlog

from penstock.app.job_type import JobType
from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.job import Lease
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
    unstarted,
)
from penstock.model.store_errors import StoreError
from penstock.operate.notices import QUEUE, notice_types
from penstock.service import Service
from penstock.store.contract import Beat, Claim, Held, Renewal
from penstock.upkeep import upkeep_services
from penstock.upkeep.extensions import extension_services
from penstock.worker.blocking import LoopWatch
from penstock.worker.execution import Executor
from penstock.worker.job_log import JobLines, about
from penstock.worker.leases import TICK_SECONDS, Heartbeat, Holdings, own_leases
from penstock.worker.own_limits import OwnLimits
from penstock.worker.pump import Pump
from penstock.worker.reports import Reports
from penstock.worker.running import Running, StopReason
from penstock.worker.target import refuse_while_loading


def served_types(app: Penstock, names: Sequence[str] | None) -> dict[str, JobType[..., ..., Any]]:
    """The application's types, or those that were named; notices too, where they have a route."""
    own, built_in = app.types, notice_types(app)
    names = names if names is not None else app.settings.worker_types or None
    named = None if names is None else [name for name in names if name not in built_in]
    if not own and named != []:
        raise InvalidOption("app", "empty", "an application with at least one @app.job")
    if named is None:
        return own | built_in
    wanted = {name for given in named for name in app.find_type(given).names}
    return {name: type_ for name, type_ in own.items() if name in wanted} | built_in


def served_queues(app: Penstock, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The queues that were named, or all; that of notices is always among them."""
    names = names if names is not None else app.settings.worker_queues
    if not names:
        return None
    return tuple(dict.fromkeys((*names, QUEUE) if app.settings.alerts.routes else names))


class Recycling:
    """Watches memory, abandoned threads and internal errors."""

    def __init__(self, settings: Settings) -> None:
        self.chosen: str | None = None
        self._settings = settings
        self._stuck = 0
        self._internal_errors = 0
        self._ticks = 0
        self._process = psutil.Process()

    def note_stuck(self) -> None:
        """A handler ignored its end."""
        self._stuck += 1

    def note_internal_error(self) -> None:
        """Something of ours, not of a handler, raised."""
        self._internal_errors += 1

    def reason(self, abandoned_threads: int) -> str | None:
        """Why to recycle now, or None."""
        settings = self._settings
        if abandoned_threads + self._stuck > settings.max_abandoned_threads:
            return f"{abandoned_threads + self._stuck} handlers outlived their timeouts"
        if self._internal_errors > settings.max_internal_errors:
            return f"{self._internal_errors} internal errors"
        self._ticks += 1
        if settings.memory_limit_mb and self._ticks % 10 == 0:
            used = self._process.memory_info().rss // 1_000_000
            if used > settings.memory_limit_mb:
                return f"{used} MB of memory, over the limit of {settings.memory_limit_mb}"
        return None


log = structlog.get_logger("penstock.worker")

CANCEL_CHECK_SECONDS = 0.25


def new_owner(node: str | None = None) -> str:
    """A lease owner's name: fresh for every process that ever runs jobs."""
    return f"{(node or os.uname().nodename).replace(':', '-')}:{new_id()}"


class Worker:
    """`await Worker(app).run()` runs jobs until `stop()`; `burst=True` ends when none is left."""

    def __init__(
        self,
        app: Penstock,
        *,
        queues: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        concurrency: int | None = None,
        max_priority: int | None = None,
        name: str | None = None,
        owner: str | None = None,
        burst: bool = False,
        upkeep: bool = True,
    ) -> None:
        refuse_while_loading()
        app.extensions.enable_installed()
        self.app = app
        self.owner = owner or new_owner()
        self.name = name or app.settings.worker_name or self.owner
        self.recycling = Recycling(app.settings)
        self.counts = {"completed": 0, "failed": 0}
        self.set_aside = 0
        self._concurrency = concurrency or app.settings.concurrency
        self._queues = served_queues(app, queues)
        self._types = served_types(app, types)
        self._own_leases = own_leases(self._types)
        homes = {type_.defaults.queue for type_ in self._types.values()}
        self._declared_queues = tuple(sorted(homes))
        self._max_priority = max_priority
        self._burst = burst
        self._with_upkeep = upkeep
        self._holdings = Holdings(app.settings, app.store.clock, self._own_leases)
        self._stopping = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._process = psutil.Process()
        self._ready = asyncio.Event()
        self._made_at = time.monotonic()

    async def run(self) -> None:
        """Work until told to stop, then drain."""
        async with self.app:
            services = self._services() if self._with_upkeep else []
            await self.app.declare()
            self._prepare()
            background = [
                asyncio.create_task(work)
                for work in (self._pump.run(), self._watch(), self._tick(), self._reports.run())
            ]
            try:
                self._heartbeat.start()
                self._loop_watch.start()
                for service in services:
                    await service.start()
                log.info("worker_started", worker_id=self.owner, types=len(self._types))
                self._ready.set()
                await self._until_stopped(background)
            finally:
                await self._shut_down(background, services)

    def drain(self) -> None:
        """Finish what runs, then end."""
        self._stopping.set()

    def end(self) -> None:
        """End at once and hand the running jobs back."""
        self._stop_now.set()
        self._stopping.set()

    def stop(self) -> None:
        """Drain; a second call ends at once."""
        if self._stopping.is_set():
            self.end()
        self.drain()

    def when_blocked(self, end: Callable[[], None]) -> None:
        """What the heartbeat's thread calls when a handler blocks the event loop for good."""
        self._holdings.on_blocked = end

    def silent_seconds(self) -> float:
        """How long this worker has not looked for work although it should; for any thread."""
        if not self._ready.is_set():
            return time.monotonic() - self._made_at
        return max(self._holdings.deaf_seconds(), self._pump.overdue_seconds)

    async def started(self) -> None:
        """Return once the worker takes jobs."""
        await self._ready.wait()

    def _prepare(self) -> None:
        app, settings = self.app, self.app.settings
        self._loop = asyncio.get_running_loop()
        self._clock = app.store.clock
        self._holdings.tick()
        self._reports = Reports(app, self.owner)
        self._lines = JobLines(self.owner, at_info=settings.log_jobs)
        self._executor = Executor(app, self._reports, processes=os.cpu_count() or 1)
        self._pump = Pump(
            app.store,
            self._claim,
            self._launch,
            lambda: [running.lease for running in self._holdings.running.values()],
            lambda: self._holdings.given_up,
            self._reports,
            OwnLimits(self._types),
            concurrency=self._concurrency,
            max_prefetch=settings.prefetch,
            poll_seconds=settings.poll_interval,
            internal_error=self.recycling.note_internal_error,
            claimed=self._lines.claimed if self._lines.every else None,
        )
        self._loop_watch = LoopWatch(
            self.owner, lambda: list(self._holdings.running.values()), self._note_blocked
        )
        self._heartbeat = Heartbeat(
            app.store,
            self.owner,
            held=lambda: self._holdings.to_renew(self._pump.prefetched),
            beat=self._beat,
            heard=self._hear_from_thread,
            renew_seconds=min(
                [settings.renew_interval, *(ms / 3000 for ms in self._own_leases.values())]
            ),
            beat_seconds=settings.heartbeat_interval,
        )

    def _services(self) -> list[Service]:
        return [*upkeep_services(self.app, self.owner), *extension_services(self.app)]

    def _claim(self, limit: int, start: int, ahead: float, at_most: Mapping[str, int]) -> Claim:
        return Claim(
            owner=self.owner,
            types=self._types.keys(),
            limit=limit,
            start=start,
            lease_ms=int(self.app.settings.lease * 1000),
            queues=self._queues,
            max_priority=self._max_priority,
            type_lease_ms=self._own_leases,
            ahead=ahead,
            at_most=at_most,
        )

    def _launch(self, lease: Lease) -> None:
        running = Running(lease, self._types[lease.type])
        earlier = self._holdings.add(running)
        if earlier is not None:  # its lease was taken away, and this worker granted the next one
            earlier.stop(StopReason.LOST)
            self._pump.finished(earlier.lease, None, 1.0)
        running.started_at = self._clock.now()
        running.begin(self._clock.monotonic())
        running.task = self._loop.create_task(self._execute(running))

    async def _execute(self, running: Running) -> None:
        try:
            await self._executor.run(running)
        except Exception:
            log.exception("execution_failed", **about(running.lease, self.owner))
            self.recycling.note_internal_error()
        finally:
            self._end(running)
            running.task = None  # else the task holds itself, until a garbage collection

    def _end(self, running: Running) -> bool:
        """Let go of an execution and have its settlement written; one without is given up."""
        settlement = running.settlement
        broken = settlement is None and running.reason is not StopReason.LOST
        if not self._holdings.end(running, give_up=broken):
            return False
        self._count(settlement)
        took_ms = settlement.duration_ms if settlement else running.lease.timeout_ms
        self._pump.finished(running.lease, settlement, took_ms / 1000)
        return True

    def _count(self, settlement: Settlement | None) -> None:
        if isinstance(settlement, Completed):
            self.counts["completed"] += 1
        elif isinstance(settlement, Failed | Buried | Crashed):
            self.counts["failed"] += 1
            self._lines.ended(settlement)
        elif isinstance(settlement, Snoozed | Cancelled):
            self.set_aside += 1
        if self._lines.every and isinstance(settlement, Completed | Snoozed | Cancelled):
            self._lines.ended(settlement)

    async def _watch(self) -> None:
        """Hear of changes: new work, and requests to cancel what runs here."""
        listener = self.app.store.subscribe()
        checked = 0.0
        try:
            while True:
                if await listener.wait(self.app.settings.poll_interval):
                    self._pump.wake()
                if self._holdings.running and time.monotonic() - checked > CANCEL_CHECK_SECONDS:
                    checked = time.monotonic()
                    await self._ask_who_is_cancelled()
        finally:
            listener.close()

    async def _ask_who_is_cancelled(self) -> None:
        try:
            asked = await asyncio.to_thread(self.app.store.leases.cancel_requests, self.owner)
        except StoreError:
            return  # the pump says so, and the next renewal asks again
        self._hear(set(), asked)

    def _hear_from_thread(self, renewal: Renewal, renewed: Sequence[Held]) -> None:
        ids = set(renewal.lost)
        lost: dict[str, int] = {}
        for held in renewed:
            # A job granted again after its lease was taken away is here twice: the older is lost.
            if held.id in ids:
                lost[held.id] = min(held.fence, lost.get(held.id, held.fence))
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._hear, set(lost.items()), renewal.cancelled)

    def _hear(self, lost: set[tuple[str, int]], cancelled: Sequence[str]) -> None:
        if lost:
            self._pump.drop(lost)
        for job_id, fence in lost:
            running = self._holdings.running.get(job_id)
            if running is not None and running.lease.fence == fence:
                ran = self._clock.now() - running.started_at
                log.warning("lease_lost", **about(running.lease, self.owner), duration_ms=ran)
                running.stop(StopReason.LOST)
        grace_until = self._clock.monotonic() + int(self.app.settings.cancel_grace * 1000)
        for job_id in cancelled:
            running = self._holdings.running.get(job_id)
            if running is not None:
                running.request_cancel(grace_until)
                self._executor.processes.request_stop(running.lease)

    async def _tick(self) -> None:
        """Enforce deadlines, and notice when this process should be replaced."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = self._holdings.tick()
            self._loop_watch.tick()
            self._executor.look_for_tracing()
            for running in list(self._holdings.running.values()):
                if running.deadline is not None and now >= running.deadline:
                    running.stop(StopReason.TIMEOUT)
                    self._abandon_if_stuck(running, now)
                elif running.cancel_at is not None and now >= running.cancel_at:
                    running.stop(StopReason.CANCEL)
            reason = self.recycling.reason(self._executor.threads.abandoned)
            if reason is not None and not self._stopping.is_set():
                log.warning("worker_recycles", worker_id=self.owner, reason=reason)
                self.recycling.chosen = reason
                self._stopping.set()

    def _abandon_if_stuck(self, running: Running, now: int) -> None:
        """A handler that ignores its end loses its slot; its lease runs out and is rescued."""
        if self._holdings.is_stuck(running, now) and self._end(running):
            self.recycling.note_stuck()

    def _beat(self) -> Beat:
        with self._process.oneshot():
            return Beat(
                owner=self.owner,
                name=self.name,
                node=self.owner.partition(":")[0],
                pid=os.getpid(),
                queues=self._queues,
                types=tuple(self._types),
                concurrency=self._concurrency,
                running=self._pump.running,
                completed=self.counts["completed"],
                failed=self.counts["failed"],
                cpu_percent=self._process.cpu_percent(),
                memory_mb=round(self._process.memory_info().rss / 1e6, 1),
                poll_age_ms=self._pump.poll_age_ms,
                max_priority=self._max_priority,
                state=self._state(),
                declared_queues=self._declared_queues,
            )

    def _note_blocked(self, running: Running | None, remark: str | None) -> None:
        """Tell others at once that the loop is blocked, or is no longer."""
        if running is not None and remark is not None:
            self._executor.note(running, remark)
        self._heartbeat.refresh()

    def _state(self) -> str:
        if self._stopping.is_set():
            return "draining"
        if self._loop_watch.is_blocked:
            return "blocked"
        return "degraded" if self._pump.degraded else "running"

    async def _until_stopped(self, background: list["asyncio.Task[None]"]) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        idle = asyncio.create_task(self._until_idle())
        try:
            await asyncio.wait([stopping, idle, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in background:
                if task.done():
                    task.result()
        finally:
            stopping.cancel()
            idle.cancel()

    async def _until_idle(self) -> None:
        if not self._burst:
            await asyncio.Event().wait()
        while not self._pump.idle:  # noqa: ASYNC110 - a burst ends once, and soon enough
            await asyncio.sleep(0.005)

    async def _shut_down(
        self, background: list["asyncio.Task[None]"], services: list[Service]
    ) -> None:
        self._stopping.set()
        self._pump.accepting = False
        self._hand_back_waiting()
        if self._holdings.running:  # then it stays for a while, and should be seen to drain
            background.append(asyncio.create_task(asyncio.to_thread(self._heartbeat.refresh)))
        for service in services:
            await service.stop()
        await self._drain(self.app.settings.drain_timeout)
        for running in list(self._holdings.running.values()):
            running.stop(StopReason.SHUTDOWN)
        await self._drain(1.0)
        self._hand_back_stuck()
        # A claim under way may still grant leases: only after it is none left to arrive.
        await self._pump.settled()
        self._hand_back_waiting()
        self._loop_watch.stop()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await self._finish()

    async def _finish(self) -> None:
        """Write the last settlements and let go of everything, whatever fails on the way."""
        with suppress(Exception):
            await self._reports.flush()
        for _ in range(3):
            await self._pump.cycle()
            if not self._pump.unwritten:
                break
        with suppress(Exception):
            await self._reports.flush()  # tells of the progress in the last words
        self._heartbeat.stop()
        await self._executor.close()
        with suppress(Exception):
            await self.app.store.workers.forget(self.owner)
        log.info("worker_stopped", worker_id=self.owner, **self.counts)

    async def _drain(self, seconds: float) -> None:
        """Wait for the running executions, unless told to stop at once."""
        tasks = [r.task for r in self._holdings.running.values() if r.task is not None]
        if not tasks:
            return
        now = asyncio.create_task(self._stop_now.wait())
        done = asyncio.create_task(asyncio.wait(tasks, timeout=seconds))
        await asyncio.wait([now, done], return_when=asyncio.FIRST_COMPLETED)
        now.cancel()
        done.cancel()

    def _hand_back_waiting(self) -> None:
        waiting = self._pump.hand_over()
        self._pump.give_back([unstarted(lease) for lease in waiting])

    def _hand_back_stuck(self) -> None:
        """Threads that did not end keep running; their leases go back, their words are stale."""
        for running in list(self._holdings.running.values()):
            running.settlement = running.settlement or _interrupted(running.lease)
            self._end(running)


def _interrupted(lease: Lease) -> HandedBack:
    return HandedBack(
        id=lease.id,
        fence=lease.fence,
        type=lease.type,
        queue=lease.queue,
        started_at=lease.started_at or lease.queued_at,
        attempts=lease.attempts,
        tenant_id=lease.tenant_id,
        started=True,
    )
