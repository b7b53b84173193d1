"""About 200 operations of every kind, one after the other, each marked when acknowledged."""

from collections.abc import Callable
from pathlib import Path

from penstock.model.job import KeyScope, Lease, NewJob
from penstock.model.states import Status
from penstock.store.contract import Report, Retention, Store
from penstock.testing.clock import FakeClock
from tests.faults.support.work import claim_of, ending, new_jobs, opened

OPERATIONS = 200


class Trace:
    """Does the operations; `acknowledged` is called after each, and once after opening."""

    def __init__(self, path: Path, acknowledged: Callable[[], None]) -> None:
        self.clock = FakeClock()
        self._path = path
        self._acknowledged = acknowledged
        self._leases: list[Lease] = []
        self._ids: list[str] = []
        self._cancelled: list[str] = []

    async def run(self) -> None:
        """Half of the operations, a closed and reopened store, the other half."""
        for half in (range(OPERATIONS // 2), range(OPERATIONS // 2, OPERATIONS)):
            async with opened(self._path, self.clock) as store:
                self._acknowledged()
                for number in half:
                    self.clock.advance(seconds=1)
                    await self._operation(store, number)
                    self._acknowledged()

    async def _operation(self, store: Store, number: int) -> None:
        step = number % 10
        if step in (0, 3, 6):
            await self._enqueue(store, number)
        elif step in (1, 4, 7):
            claim = claim_of("worker:1", 3, lease_ms=30_000)
            self._leases += (await store.jobs.claim(claim)).leases
        elif step in (2, 5):
            await self._settle(store, number)
        elif step == 8:
            await self._report(store)
        else:
            await self._operate(store, number)

    async def _enqueue(self, store: Store, number: int) -> None:
        jobs = new_jobs(3, payload=f'"{"x" * 700 * (number % 5)}"')
        keyed = NewJob(id=jobs[0].id, type="work", key=f"k{number % 7}", key_scope=KeyScope.FOREVER)
        self._ids += [job.id for job in jobs[1:]]
        await store.jobs.enqueue([keyed, *jobs[1:]] if number % 2 else jobs)

    async def _settle(self, store: Store, number: int) -> None:
        ending_now, self._leases = self._leases[:3], self._leases[3:]
        settlements = [ending(lease, number // 5 + n) for n, lease in enumerate(ending_now)]
        await store.jobs.settle("worker:1", settlements)

    async def _report(self, store: Store) -> None:
        await store.jobs.report(
            "worker:1",
            [
                Report(id=x.id, fence=x.fence, checkpoint='{"at": 1}', logs=[(0, "info", "line")])
                for x in self._leases
            ],
        )

    async def _operate(self, store: Store, number: int) -> None:
        turn = number // 10 % 5
        if turn == 0:
            await store.upkeep.rescue()
        elif turn == 1:
            answer = await store.jobs.cancel(self._ids[-4:], "not needed")
            self._cancelled = [i for i, status in answer.items() if status == "cancelled"]
        elif turn == 2:
            await store.jobs.requeue(self._cancelled)
        elif turn == 3:
            await store.upkeep.lead("upkeep", f"worker:{number}", 10_000)
        else:
            await store.upkeep.prune(Retention(keep_ms={Status.COMPLETED: 20_000}), limit=5)
