"""Enqueues and settles through whatever happens to the store, and keeps account of both."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.model.errors import StoreFull, StoreUnavailable
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.settlement import Settlement
from penstock.store.contract import Store
from tests.faults.support.waiting import eventually
from tests.faults.support.work import claim_of, completed

OWNER = "consumer:1"
PAUSE_SECONDS = 0.01
BATCH = 5


class Traffic:
    """The ids that were acknowledged, and how often each was settled."""

    def __init__(self, store: Store, payload: str = "{}") -> None:
        self.acknowledged: list[str] = []
        self.settled: Counter[str] = Counter()
        self.stale: list[str] = []
        self.refusals: list[Exception] = []
        self._store = store
        self._payload = payload

    async def more_settled(self, seconds: float = 60) -> None:
        """Return once something was settled from now on."""
        before = len(self.settled)
        await eventually(lambda: len(self.settled) > before, seconds)

    async def produce(self) -> None:
        """Enqueue until cancelled; what was not acknowledged is sent again."""
        while True:
            jobs = [NewJob(id=new_id(), type="work", payload=self._payload) for _ in range(BATCH)]
            while not await self._enqueued(jobs):  # noqa: ASYNC110 - nothing rings
                await asyncio.sleep(PAUSE_SECONDS)
            self.acknowledged += [job.id for job in jobs]
            await asyncio.sleep(PAUSE_SECONDS)

    async def consume(self) -> None:
        """Claim and settle until cancelled; what was not answered is sent again."""
        unsettled: list[Settlement] = []
        while True:
            try:
                if not unsettled:
                    leases = (await self._store.jobs.claim(claim_of(OWNER, 10))).leases
                    unsettled = [completed(lease) for lease in leases]
                if unsettled:
                    self.stale += await self._store.jobs.settle(OWNER, unsettled)
                    self.settled.update(settlement.id for settlement in unsettled)
                    unsettled = []
            except (StoreUnavailable, StoreFull) as error:
                self.refusals.append(error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _enqueued(self, jobs: list[NewJob]) -> bool:
        try:
            await self._store.jobs.enqueue(jobs)
            return True
        except (StoreUnavailable, StoreFull) as error:
            self.refusals.append(error)
            return False


@asynccontextmanager
async def flowing(store: Store) -> AsyncIterator[Traffic]:
    """Traffic for the length of a block; at its end everything acknowledged has been settled."""
    traffic = Traffic(store)
    producing = asyncio.create_task(traffic.produce())
    consuming = asyncio.create_task(traffic.consume())
    try:
        yield traffic
        producing.cancel()
        await asyncio.gather(producing, return_exceptions=True)
        # A claim whose answer was lost has left leases that nobody knows of.
        await eventually(lambda: _rescued(store))
        await eventually(lambda: set(traffic.acknowledged) <= traffic.settled.keys(), 60)
    finally:
        for task in (producing, consuming):
            task.cancel()
        await asyncio.gather(producing, consuming, return_exceptions=True)


async def _rescued(store: Store) -> bool:
    await store.upkeep.rescue(owner=OWNER)
    return True
