"""The sweep over waiting jobs. Claims stage what they need; this only catches what is left."""

from penstock.client.app import Penstock
from penstock.service import Service
from penstock.upkeep.leader import Leader


class Stage(Service):
    """Queues jobs that fell due and buries those that expired."""

    name = "stage"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(1.0)
        self._upkeep = app.store.upkeep
        self._leader = leader

    async def run_once(self) -> None:
        """Stage and expire until nothing is due."""
        if not self._leader.leads:
            return
        while await self._upkeep.stage():
            pass
        while await self._upkeep.expire():
            pass
