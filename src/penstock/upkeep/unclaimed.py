"""Reporting jobs that wait although no live worker knows their type."""

from collections.abc import Iterable, Mapping

import structlog

from penstock.client.app import Penstock
from penstock.client.notices import TYPE as NOTICE
from penstock.service import Service
from penstock.store.contract import WorkerInfo
from penstock.upkeep.leader import Leader

log = structlog.get_logger("penstock.upkeep")


class Unclaimed(Service):
    """Says once a minute which types nobody runs; the jobs stay queued for the next deploy."""

    name = "unclaimed"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        super().__init__(60.0)
        self._workers = app.store.workers
        self._leader = leader

    async def run_once(self) -> None:
        """Compare what waits with what is run."""
        if not self._leader.leads:
            return
        for type_, jobs in (await self.waiting()).items():
            log.warning("no_worker_for_type", job_type=type_, jobs=jobs)

    async def waiting(self) -> dict[str, int]:
        """Types with queued jobs that no live worker runs, and how many."""
        return unserved(await self._workers.waiting_types(), await self._workers.list())


def unserved(waiting: Mapping[str, int], workers: Iterable[WorkerInfo]) -> dict[str, int]:
    """Types with queued jobs that no living worker runs, by name."""
    served = {name for worker in workers if worker.alive for name in worker.types}
    served.add(NOTICE)  # which a server runs where no worker does
    return {name: jobs for name, jobs in sorted(waiting.items()) if name not in served}
