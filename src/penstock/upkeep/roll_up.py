"""Folding metrics into coarser steps, and sampling the depths."""

from penstock.client.app import Penstock
from penstock.service import Service
from penstock.upkeep.leader import Leader


class RollUp(Service):
    """Runs every ten seconds, the finest step there is."""

    name = "roll_up"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(10.0)
        self._metrics = app.store.metrics
        self._leader = leader

    async def run_once(self) -> None:
        """Fold, sample, drop."""
        if self._leader.leads:
            await self._metrics.roll_up()
