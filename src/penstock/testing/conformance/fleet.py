"""Workers without their handlers: they claim, start what their slots allow, and settle."""

from collections import deque

from penstock.model.job import Lease
from penstock.store.contract import Store
from penstock.testing.conformance.build import Ending, a_claim, handed_back
from penstock.worker.slots import RunningSlots


class Member:
    """One worker of a fleet, driven step by step as its pump would be."""

    def __init__(self, store: Store, owner: str, types: tuple[str, ...], concurrency: int) -> None:
        self.owner = owner
        self.running: list[Lease] = []
        self.waiting: deque[Lease] = deque()
        self.next_due_in_ms: int | None = None
        self._store = store
        self._types = types
        self._concurrency = concurrency
        self._slots = RunningSlots(lambda: self.running)

    @property
    def prefetched(self) -> list[Lease]:
        """Leases that have not started."""
        return [*self.waiting, *self._slots.held()]

    async def claim(self, ahead: float = 0) -> int:
        """Claim, obey the slots, start what may start; how many were leased."""
        free = max(0, self._concurrency - len(self.running) - len(self.waiting))
        limit = free + round(ahead * self._concurrency)
        claimed = await self._store.jobs.claim(
            a_claim(owner=self.owner, types=self._types, limit=limit, start=free, ahead=ahead)
        )
        self.next_due_in_ms = claimed.next_due_in_ms
        self._slots.allow(claimed.slots)
        self.waiting.extend(claimed.leases)
        await self.fill()
        return len(claimed.leases)

    async def fill(self) -> None:
        """Start waiting leases as far as slots and concurrency allow."""
        started = []
        while len(self.running) < self._concurrency:
            lease = self._next()
            if lease is None:
                break
            self.running.append(lease)
            self._slots.take(lease)
            if lease.started_at is None:
                started.append((lease.id, lease.fence))
        await self._store.jobs.start(self.owner, started)

    async def settle(self, lease: Lease, ending: Ending) -> None:
        """End one execution and go on with the next."""
        self.running.remove(lease)
        self._slots.free(lease)
        assert await self._store.jobs.settle(self.owner, [ending(lease)]) == []
        await self.fill()

    async def stop(self) -> None:
        """Hand everything back."""
        back = [handed_back(lease) for lease in self.running]
        back += [handed_back(lease, started=False) for lease in self.prefetched]
        self.running.clear()
        self.waiting.clear()
        self._slots = RunningSlots(lambda: self.running)
        await self._store.jobs.settle(self.owner, back)

    def _next(self) -> Lease | None:
        freed = self._slots.next()
        if freed is not None:
            return freed
        while self.waiting:
            lease = self.waiting.popleft()
            if self._slots.allows(lease):
                return lease
            self._slots.hold(lease)
        return None
