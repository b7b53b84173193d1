"""The sweep over dependencies: a backstop, for the end of a job releases its dependents itself."""

import structlog

from penstock.client.app import Penstock
from penstock.service import Service
from penstock.upkeep.leader import Leader

log = structlog.get_logger("penstock.upkeep")


class Release(Service):
    """Closes edges whose parent has ended; a hit means a fault elsewhere, and is reported."""

    name = "release"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(30.0)
        self._upkeep = app.store.upkeep
        self._leader = leader

    async def run_once(self) -> None:
        """Sweep until nothing is left."""
        while self._leader.leads and (released := await self._upkeep.release()):
            log.warning("dependents_released_late", parents=released)
