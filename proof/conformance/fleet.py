"""Workers without their handlers: they claim, start what their slots allow, and settle."""

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from itertools import count
from random import Random

from penstock.model.controls import Limit, LimitKind, LimitScope
from penstock.model.job import Lease
from penstock.store.contract import Store
from penstock.worker.running import RunningSlots
from proof.conformance.build import (
    Ending,
    a_claim,
    a_job,
    buried,
    completed,
    handed_back,
)

_names = count()


def at_once(capacity: int, scope: LimitScope, name: str, *, by_operator: bool = False) -> Limit:
    """At most so many at once."""
    return Limit(
        scope=scope,
        name=name,
        kind=LimitKind.CONCURRENCY,
        capacity=capacity,
        by_operator=by_operator,
    )


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


class FleetWalk:
    """Three workers, three limits, and one random thing after another."""

    def __init__(self, store: Store, random: Random, type_: int, queue: int, key: int) -> None:
        number = next(_names)
        self.store = store
        self.random = random
        self.types = (f"type-{number}", f"other-{number}")
        self.queues = (f"queue-{number}", f"elsewhere-{number}")
        self.keys = (f"key-{number}", None)
        self.members = [
            Member(store, f"host:{number}:{name}", self.types, random.randint(1, 6))
            for name in "abc"
        ]
        self.capacity: dict[tuple[LimitScope, str], int] = {
            (LimitScope.TYPE, self.types[0]): type_,
            (LimitScope.QUEUE, self.queues[0]): queue,
            (LimitScope.KEY, f"key-{number}"): key,
        }
        self.limited = list(self.capacity)
        self.steps: list[Callable[[Member], Awaitable[object]]] = [
            self.claim,
            self.claim,
            self.settle,
            self.settle,
            self.settle,
            self.enqueue,
            self.change,
            self.stop,
        ]

    async def set_up(self) -> None:
        for (scope, name), capacity in self.capacity.items():
            await self.store.controls.set_limits([at_once(capacity, scope, name)])
        for _ in range(5):
            await self.enqueue(self.members[0])

    async def step(self) -> None:
        before = self.running()
        chosen = self.random.choice(self.steps)
        await chosen(self.random.choice(self.members))
        for name, running in self.running().items():
            if name in self.capacity:
                # A limit that shrank is exceeded by what runs on, never by what starts.
                assert running <= max(self.capacity[name], before[name]), (chosen, name)

    async def finish(self) -> None:
        """With nothing else in the way, all of it runs in the end."""
        for _ in range(60):
            for member in self.members:
                await member.claim(ahead=1)
                for lease in list(member.running):
                    await member.settle(lease, completed)
            if not any(m.running or m.prefetched for m in self.members):
                depth = [await self.store.jobs.depth(queue, 10) for queue in self.queues]
                if not any(depth):
                    return
        raise AssertionError("some jobs were never started")

    def running(self) -> "Counter[tuple[LimitScope, str]]":
        found: Counter[tuple[LimitScope, str]] = Counter()
        for lease in (lease for member in self.members for lease in member.running):
            found[LimitScope.TYPE, lease.type] += 1
            found[LimitScope.QUEUE, lease.queue] += 1
            found[LimitScope.KEY, lease.limit_key or ""] += 1
        return found

    async def claim(self, member: Member) -> None:
        await member.claim(self.random.choice((0, 0.5, 1, 3)))

    async def settle(self, member: Member) -> None:
        if member.running:
            ending = self.random.choice((completed, completed, buried, handed_back))
            await member.settle(self.random.choice(member.running), ending)

    async def enqueue(self, _: Member) -> None:
        pick = self.random.choice
        several = [
            a_job(type=pick(self.types), queue=pick(self.queues), limit_key=pick(self.keys))
            for _ in range(self.random.randint(1, 4))
        ]
        await self.store.jobs.enqueue(several)

    async def change(self, _: Member) -> None:
        scope, name = self.random.choice(self.limited)
        capacity = self.random.randint(0, 5)
        if capacity:
            self.capacity[scope, name] = capacity
            await self.store.controls.set_limits([at_once(capacity, scope, name)])
        else:
            self.capacity.pop((scope, name), None)
            await self.store.controls.remove_limit(scope, name, LimitKind.CONCURRENCY)
        for member in self.members:
            await member.claim()  # until then, each goes on with the slots it was given

    async def stop(self, member: Member) -> None:
        await member.stop()
