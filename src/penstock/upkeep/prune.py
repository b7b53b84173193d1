"""Deleting ended jobs past their retention, and folding metrics into coarser steps."""

import asyncio

import structlog

from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.model.states import Status
from penstock.service import Service
from penstock.store.contract import Retention
from penstock.store.contract.metrics import DAY_MS
from penstock.upkeep.leader import Leader

log = structlog.get_logger("penstock.upkeep")

A_CENTURY_MS = 100 * 365 * DAY_MS


class Prune(Service):
    """Deletes in small batches with pauses, so that nobody waits for it."""

    name = "prune"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(app.settings.prune_interval)
        self._upkeep = app.store.upkeep
        self._leader = leader
        self._retention = pruning_of(app)

    async def run_once(self) -> None:
        """Prune until nothing is past its retention."""
        pruned = 0
        more = self._leader.leads
        while more:
            batch = await self._upkeep.prune(self._retention)
            pruned += batch.jobs
            more = batch.more and self._leader.leads
            await asyncio.sleep(0.01)
        if pruned:
            log.info("pruned", jobs=pruned)


def retention_of(settings: Settings) -> Retention:
    """The retention the settings ask for."""
    return Retention(
        keep_ms={
            Status.COMPLETED: int(settings.keep_completed * 1000),
            Status.CANCELLED: int(settings.keep_cancelled * 1000),
            Status.DEAD_LETTER: int(settings.keep_dead * 1000),
        },
        keep_closed_ms=int(settings.keep_resolved * 1000),
        keep_last=settings.keep_last,
    )


def pruning_of(app: Penstock) -> Retention:
    """The retention to prune by: ended jobs stay for an extension that keeps them elsewhere."""
    extensions = app.extensions
    for each in extensions.known().values():
        if each.keeps_jobs and getattr(extensions.settings(each.name), each.keeps_jobs) > 0:
            return Retention(keep_ms={}, keep_closed_ms=A_CENTURY_MS)
    return retention_of(app.settings)


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
