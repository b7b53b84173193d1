"""What a server notices about itself and its store: traffic, workers, figures, metrics."""

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, FastAPI, Request

from penstock.server.prometheus.reading import Readings
from penstock.server.slos import Slo, slos
from penstock.server.stats import Stats, StatsDesk
from penstock.server.traffic import Measured, Traffic
from penstock.server.uptime import Uptime

if TYPE_CHECKING:
    from penstock.client.app import Penstock


class Observer:
    """Kept for as long as the server runs; `start` and `stop` with it."""

    def __init__(self, app: "Penstock") -> None:
        self.traffic = Traffic()
        self.uptime = Uptime(app.store, app.settings.min_workers)
        self.stats = StatsDesk(app.store)
        self.readings = Readings(app)

    async def over(self, span_ms: int) -> tuple[Stats, list[Slo]]:
        """Figures over a window, and whether the objectives were met in it."""
        found = await self.stats.over(span_ms)
        return found, slos(found, self.traffic, self.uptime)

    async def start(self) -> None:
        """Begin to look after the workers."""
        await self.uptime.start()

    async def stop(self) -> None:
        """End it."""
        await self.uptime.stop()


def install(api: FastAPI, app: "Penstock") -> Observer:
    """Have every request to an application noticed."""
    observer = api.state.observer = Observer(app)
    api.add_middleware(Measured, traffic=observer.traffic)
    return observer


async def _observer(request: Request) -> Observer:
    found: Observer = request.app.state.observer
    return found


Watching = Annotated[Observer, Depends(_observer)]
"""The observer of the server a route belongs to."""
