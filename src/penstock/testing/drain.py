"""Running everything that can run, in this process, until nothing is left."""

from collections.abc import Coroutine
from typing import Any, NamedTuple, overload

from penstock.app.penstock import Penstock
from penstock.app.sync import SyncPenstock
from penstock.model.errors import InvalidOption
from penstock.testing.clock import FakeClock
from penstock.testing.timeline import Timeline
from penstock.upkeep.schedules import fire_due
from penstock.worker.worker import Worker


class Drained(NamedTuple):
    """How many executions ended well, and how many otherwise."""

    completed: int
    failed: int


@overload
def drain(
    app: Penstock, *, clock: FakeClock | None = None, through: float = 0
) -> Coroutine[Any, Any, Drained]: ...
@overload
def drain(app: SyncPenstock, *, clock: FakeClock | None = None, through: float = 0) -> Drained: ...


def drain(
    app: Penstock | SyncPenstock, *, clock: FakeClock | None = None, through: float = 0
) -> Coroutine[Any, Any, Drained] | Drained:
    """Run every job that is due: `await drain(app)`, or `drain(app.sync)` without an event loop.

    With a `FakeClock` and `through=3600`, what falls due within the next hour happens as well,
    ticks of schedules and retries included: the clock jumps from one moment to the next, and stays
    at the last one.
    """
    if isinstance(app, SyncPenstock):
        return app.run(_drain(app.app, clock, through))
    return _drain(app, clock, through)


async def _drain(app: Penstock, clock: FakeClock | None, through: float) -> Drained:
    async with app:
        moved = clock or app.store.clock
        counts = Counts(app)
        await app.declare()
        if isinstance(moved, FakeClock):
            await Timeline(app, moved, counts.run_due).play(round(through * 1000))
        elif through:
            raise InvalidOption("through", through, "0 unless the application has a FakeClock")
        else:
            await fire_due(app)
            await counts.run_due()
        return Drained(counts.completed, counts.failed)


class Counts:
    """Runs what is due with a real worker, and counts."""

    def __init__(self, app: Penstock) -> None:
        self.completed = 0
        self.failed = 0
        self._app = app

    async def run_due(self) -> None:
        """Run until nothing is left that may run now."""
        ran = True
        while ran:
            worker = Worker(self._app, burst=True, upkeep=False)
            await worker.run()
            failed = worker.counts["failed"] + worker.set_aside
            self.completed += worker.counts["completed"]
            self.failed += failed
            # A child enqueued by the very last handler may have come too late for the worker.
            ran = worker.counts["completed"] + failed > 0 and await self._is_waiting()

    async def _is_waiting(self) -> bool:
        waiting = await self._app.store.workers.waiting_types()
        return not self._app.types.keys().isdisjoint(waiting)
