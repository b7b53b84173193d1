"""Delivering notices of alerts where no worker does."""

from typing import TYPE_CHECKING

from penstock.alerts.judge import rules_of
from penstock.operate.notices import QUEUE, TYPE
from penstock.service import Service
from penstock.store.contract import WorkerInfo
from penstock.worker.worker import Worker

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

LOOK_SECONDS = 5.0
AT_ONCE = 4


class Delivery(Service):
    """Looks every few seconds, and runs what waits if nobody else will.

    Rules that nobody can judge are refused here, when a worker or a server starts.
    """

    name = "delivery"

    def __init__(self, app: "Penstock") -> None:
        super().__init__(LOOK_SECONDS)
        rules_of(app)
        self._app = app

    async def run_once(self) -> None:
        """Deliver what is due, unless a living worker serves the queue of notices."""
        if not self._app.settings.alerts.routes or not await self._waits():
            return
        if any(_delivers(worker) for worker in await self._app.store.workers.list()):
            return
        here = Worker(
            self._app,
            types=[TYPE],
            queues=[QUEUE],
            concurrency=AT_ONCE,
            name="alerts",
            burst=True,
            upkeep=False,
        )
        await here.run()

    async def _waits(self) -> bool:
        """Whether a notice is there; one that waits for its retry is staged by a claim."""
        depths = await self._app.store.metrics.depths()
        return any(
            depth.queued + depth.failed + depth.pending for depth in depths if depth.queue == QUEUE
        )


def _delivers(worker: WorkerInfo) -> bool:
    served = worker.queues is None or QUEUE in worker.queues
    return worker.alive and served and TYPE in worker.types
