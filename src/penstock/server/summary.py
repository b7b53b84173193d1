"""How things stand at one moment, as far as every page shows it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.model.alert import Alert, AlertState
from penstock.operate.alerts import Alerts
from penstock.operate.health import Check, checks_of

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract import QueueDepth


class Summary(Struct, frozen=True):
    """What a look at the store has shown."""

    depths: "list[QueueDepth]"
    dead: int
    workers: int
    firing: list[Alert]
    checks: Mapping[str, Check]

    @property
    def busy(self) -> int:
        """Jobs that run now."""
        return sum(depth.in_progress for depth in self.depths)


async def summarise(app: "Penstock") -> Summary:
    """Look at an application's store."""
    store = app.store
    alerts = await Alerts(app).list()
    workers = await store.workers.list()
    depths = await store.metrics.depths()
    dead = await store.metrics.dead_count()
    limits = await store.controls.limits()
    pauses = await store.controls.pauses()
    return Summary(
        depths=depths,
        dead=dead,
        workers=sum(worker.alive for worker in workers),
        firing=[alert for alert in alerts if alert.state is AlertState.FIRING],
        checks=checks_of(app.settings, workers, depths, dead, limits, pauses),
    )
