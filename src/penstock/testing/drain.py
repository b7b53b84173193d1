"""Running everything that can run, in this process, until nothing is left."""

from collections.abc import Coroutine
from typing import Any, NamedTuple, overload

from penstock.client.app import Penstock
from penstock.client.sync import SyncPenstock
from penstock.model.errors import InvalidOption
from penstock.store.contract import Claim
from penstock.testing.clock import FakeClock
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

    With a `FakeClock` and `through=3600`, jobs that fall due within the next hour run as well,
    retries included: the clock jumps from one due time to the next, and stays at the last one.
    """
    if isinstance(app, SyncPenstock):
        return app.run(_drain(app.app, clock, through))
    return _drain(app, clock, through)


async def _drain(app: Penstock, clock: FakeClock | None, through: float) -> Drained:
    async with app:
        moved = clock or app.store.clock
        if through and not isinstance(moved, FakeClock):
            raise InvalidOption("through", through, "0 unless the application has a FakeClock")
        drained = await _run_due(app)
        end = moved.monotonic() + round(through * 1000)
        while isinstance(moved, FakeClock):
            pause = await _next_due_in_ms(app)
            if pause is None or moved.monotonic() + pause > end:
                break
            moved.advance(pause / 1000)
            more = await _run_due(app)
            drained = Drained(drained.completed + more.completed, drained.failed + more.failed)
        return drained


async def _run_due(app: Penstock) -> Drained:
    completed = failed = 0
    while True:
        worker = Worker(app, burst=True, upkeep=False)
        await worker.run()
        completed += worker.counts["completed"]
        failed += worker.counts["failed"] + worker.set_aside
        # A child enqueued by the very last handler may have come too late for the worker.
        if not app.types.keys() & (await app.store.workers.waiting_types()).keys():
            return Drained(completed, failed)


async def _next_due_in_ms(app: Penstock) -> int | None:
    """A claim of nothing stages what is due and tells when the next job will be."""
    nothing = Claim(owner="drain", types=(), limit=0, start=0, lease_ms=0)
    return (await app.store.jobs.claim(nothing)).next_due_in_ms
