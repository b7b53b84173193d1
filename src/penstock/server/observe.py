"""What a server notices about itself and its store: traffic, workers, figures, metrics."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from penstock.operate.stats import Stats
from penstock.server.prometheus.scrape import Scraper
from penstock.server.requests import Traffic
from penstock.server.stats import RecentStats, slos, slos_of_jobs
from penstock.server.uptime import Uptime

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract import Store


class Observer:
    """Kept for as long as the server runs; its `uptime` starts and stops with it."""

    def __init__(self, app: "Penstock") -> None:
        self.traffic = Traffic()
        self.scraper = Scraper(app)
        self._min_workers = app.settings.min_workers
        self.attach(app.store)

    def attach(self, store: "Store") -> None:
        """Look at a store."""
        self.uptime = Uptime(store, self._min_workers)
        self.stats = RecentStats(store)

    async def over(self, span_ms: int, tenant_id: str | None = None) -> Stats:
        """Figures over a window, and whether the objectives were met in it.

        Of a tenant's jobs, only those objectives are told that are about its own.
        """
        found = await self.stats.over(span_ms, tenant_id)
        if tenant_id is not None:
            return replace(found, slos=slos_of_jobs(found))
        return replace(found, slos=slos(found, self.traffic, self.uptime))
