"""The sweep over waiting jobs. Claims stage what they need; this only catches what is left."""

import time
from asyncio import sleep

from penstock.client.app import Penstock
from penstock.service import Service
from penstock.upkeep.leader import Leader

BATCH = 1_000
REST_SHARE = 4
"""How many times as long as a full batch took the store is then left to the workers."""


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
        began = time.monotonic()
        while staged := await self._upkeep.stage(BATCH):
            if staged >= BATCH:  # without a rest, workers would wait until all of it is staged
                await sleep(REST_SHARE * (time.monotonic() - began))
            began = time.monotonic()
        while await self._upkeep.expire():
            pass
