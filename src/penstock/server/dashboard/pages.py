"""The pages there are, for the navigation, with counts that are kept fresh."""

import asyncio
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.client.alerts import Alerts
from penstock.model.alert import Alert, AlertState
from penstock.server.access.identity import Identity
from penstock.server.access.scopes import Scope

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.store.contract import QueueDepth

FRESH_SECONDS = 1.0
# Of a large installation a look takes long: no more than a twentieth of the time is spent looking.
FRESH_TIMES_COST = 20


class Page(Struct, frozen=True):
    """An entry of the navigation; `whole` ones concern the whole installation, not one tenant."""

    path: str
    title: str
    whole: bool = False
    scope: Scope = Scope.READ
    count: int = 0
    bad: bool = False


PAGES = (
    Page("", "Overview", whole=True),
    Page("jobs", "Jobs"),
    Page("dead", "Dead letters"),
    Page("schedules", "Schedules"),
    Page("queues", "Queues", whole=True),
    Page("workers", "Workers", whole=True),
    Page("alerts", "Alerts", whole=True),
    Page("audit", "Audit log"),
    Page("access", "Access", whole=True, scope=Scope.ADMIN),
)


class Glance(Struct, frozen=True):
    """What stands in the store at one moment, as far as every page shows it."""

    depths: "list[QueueDepth]"
    dead: int
    workers: int
    firing: list[Alert]

    @property
    def busy(self) -> int:
        """Jobs that run now."""
        return sum(depth.in_progress for depth in self.depths)


class Desk:
    """What the pages of one server share: a look at the store, at most one a second."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._seen: Glance | None = None
        self._until = 0.0
        self._looking = asyncio.Lock()

    async def glance(self) -> Glance:
        """How things stand, or stood a moment ago."""
        async with self._looking:
            began = time.monotonic()
            if self._seen is None or began >= self._until:
                self._seen = await self._look()
                took = time.monotonic() - began
                self._until = began + max(FRESH_SECONDS, FRESH_TIMES_COST * took)
            return self._seen

    async def _look(self) -> Glance:
        store = self._app.store
        alerts = await Alerts(self._app).list()
        workers = await store.workers.list()
        return Glance(
            depths=await store.metrics.depths(),
            dead=await store.metrics.dead_count(),
            workers=sum(worker.alive for worker in workers),
            firing=[alert for alert in alerts if alert.state is AlertState.FIRING],
        )

    async def pages(self, caller: Identity) -> list[Page]:
        """The pages a caller may open; counts are for those who may see the whole."""
        bound = caller.tenant_id is not None
        open_to = [p for p in PAGES if caller.may(p.scope) and not (bound and p.whole)]
        if bound:
            return open_to
        seen = await self.glance()
        counts = {
            "jobs": (seen.busy, False),
            "dead": (seen.dead, seen.dead > 0),
            "workers": (seen.workers, False),
            "alerts": (len(seen.firing), bool(seen.firing)),
        }
        return [
            Page(p.path, p.title, p.whole, p.scope, *counts.get(p.path, (0, False)))
            for p in open_to
        ]
