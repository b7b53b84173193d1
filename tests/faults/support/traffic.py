"""Enqueues and settles through whatever happens to the store, and keeps account of both."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.outcome import Settlement
from penstock.model.store_errors import StoreFull, StoreUnavailable
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
        self._unsettled: list[Settlement] = []
        self._turn = asyncio.Lock()

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
        while True:
            try:
                async with self._turn:
                    await self._consume()
            except (StoreUnavailable, StoreFull) as error:
                self.refusals.append(error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def rescued(self) -> bool:
        """Give back leases that nobody knows of, once none is that the consumer knows."""
        async with self._turn:
            if not self._unsettled:
                await self._store.upkeep.rescue(owner=OWNER)
            return not self._unsettled

    async def _consume(self) -> None:
        if not self._unsettled:
            leases = (await self._store.jobs.claim(claim_of(OWNER, 10))).leases
            self._unsettled = [completed(lease) for lease in leases]
        if self._unsettled:
            self.stale += await self._store.jobs.settle(OWNER, self._unsettled)
            self.settled.update(settlement.id for settlement in self._unsettled)
            self._unsettled = []

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
        await eventually(traffic.rescued)
        await eventually(lambda: set(traffic.acknowledged) <= traffic.settled.keys(), 60)
    finally:
        for task in (producing, consuming):
            task.cancel()
        await asyncio.gather(producing, consuming, return_exceptions=True)
