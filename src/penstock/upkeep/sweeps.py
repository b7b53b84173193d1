"""Backstops for what claims, settlements and starting workers usually do themselves."""

import time
from asyncio import sleep
from collections.abc import Iterable, Mapping

import structlog

from penstock.app.penstock import Penstock
from penstock.model.ids import new_id
from penstock.operate.journal import kept
from penstock.operate.notices import TYPE as NOTICE
from penstock.service import Service
from penstock.store.contract import WorkerInfo
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


LOOK_SECONDS = 10.0
KIND, NAME = "declarations", "mark"


class Declarations(Service):
    """Looks for a mark that goes only with everything else.

    What an operator took away stays away: a limit or a schedule alone may be missing.
    """

    name = "declarations"

    def __init__(self, app: Penstock) -> None:
        super().__init__(LOOK_SECONDS)
        self._app = app
        self._seen: str | None = None

    async def run_once(self) -> None:
        """Declare everything again if the mark is not the one that this process knows."""
        mark = await kept(self._app.store, KIND, NAME, new_id)
        if self._seen not in (None, mark):
            await self._app.store.migrate()
            if self._app.types:
                await self._app.declare()
            log.warning("store_was_emptied", declared=len(self._app.declarations))
        self._seen = mark
