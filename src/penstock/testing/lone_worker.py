"""A worker that runs one job after the other, here, and may be made to die."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NoReturn

from penstock.app.penstock import Penstock
from penstock.model.job import Lease
from penstock.model.outcome import Settlement
from penstock.store.contract import Claim
from penstock.testing.clock import FakeClock
from penstock.testing.local import in_this_process
from penstock.worker.execution import Executor
from penstock.worker.leases import own_leases
from penstock.worker.reports import Reports
from penstock.worker.running import Running, StopReason
from penstock.worker.worker import new_owner

MOST_AT_ONCE = 100_000


class WorkerDied(BaseException):
    """Ends a handler without a trace, as the end of its process would."""


class LoneWorker:
    """Claims, executes and settles one job at a time: what happens is always the same."""

    def __init__(self, app: Penstock, clock: FakeClock) -> None:
        self._app = app
        self._clock = clock
        self._doomed: Counter[str] = Counter()
        self._running: Running | None = None

    @property
    def busy(self) -> bool:
        """Whether a handler runs."""
        return self._running is not None

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None, None]:
        """Have threads and resources ready in this event loop."""
        self._start()
        try:
            yield
        finally:
            await self._executor.close()

    async def run_due(self) -> None:
        """Run the jobs that may run now, and those that these enqueue."""
        for _ in range(MOST_AT_ONCE):
            leases = (await self._app.store.jobs.claim(self._claim())).leases
            if not leases:
                return
            await self._run(leases[0])
        raise AssertionError(
            f"There were {MOST_AT_ONCE:,} executions at one moment: "
            "some job enqueues itself without a delay."
        )

    def doom(self, type_: str) -> None:
        """Die after the next execution of this type, before it is settled."""
        self._doomed[type_] += 1

    def die(self) -> NoReturn:
        """Die here and now; for handlers to call."""
        if self._running is None:
            raise RuntimeError("crash() is for handlers: there is no worker at work to die here.")
        self._running.reason = StopReason.LOST
        raise WorkerDied

    async def spend(self, milliseconds: int) -> None:
        """Let time pass in a handler; at its timeout it is stopped."""
        running = self._running
        if running is None or running.deadline is None:
            raise RuntimeError("spend() is for handlers; move the time with advance().")
        left = max(0, running.deadline - self._clock.monotonic())
        self._clock.advance(min(left, milliseconds) / 1000)
        if milliseconds >= left:
            running.stop(StopReason.TIMEOUT)
            await asyncio.sleep(0)
            raise TimeoutError("The time of the handler is over.")  # in a thread of its own

    def _start(self) -> None:
        self._owner = new_owner("virtual")
        self._reports = Reports(self._app, self._owner)
        self._executor = InThisProcess(self._app, self._reports, processes=0)

    def _claim(self) -> Claim:
        types = self._app.types
        return Claim(
            owner=self._owner,
            types=types,
            limit=1,
            start=1,
            lease_ms=int(self._app.settings.lease * 1000),
            type_lease_ms=own_leases(types),
        )

    async def _run(self, lease: Lease) -> None:
        self._running = running = Running(lease, in_this_process(self._app.types[lease.type]))
        running.started_at = self._clock.now()
        running.begin(self._clock.monotonic())
        running.task = asyncio.create_task(self._execute(running))
        try:
            # The clock stands still meanwhile: a handler that hangs does so in real time.
            await asyncio.wait({running.task}, timeout=lease.timeout_ms / 1000)
            if not running.task.done():
                running.stop(StopReason.TIMEOUT)
            await running.task
        finally:
            self._running = None

    async def _execute(self, running: Running) -> None:
        settlement = await self._executor.run(running)
        name = running.type.name
        if settlement is None or running.reason is StopReason.LOST or self._doomed[name]:
            self._doomed[name] = max(0, self._doomed[name] - 1)
            await self._executor.close()
            self._start()
        else:
            await self._settle(settlement)

    async def _settle(self, settlement: Settlement) -> None:
        jobs = self._app.store.jobs
        last_words = self._reports.last_words([settlement])
        if last_words:
            await jobs.report(self._owner, last_words)
        await jobs.settle(self._owner, [settlement])
        await self._reports.flush()


class InThisProcess(Executor):
    """Runs suspects here too: nothing here can take a worker down with it."""

    def _wants_process(self, running: Running) -> bool:
        return False
