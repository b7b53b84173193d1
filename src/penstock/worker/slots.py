"""Which leases a worker may start under limits on concurrency, and which must wait for a slot."""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable

from penstock.model.job import Lease
from penstock.model.limits import LimitName, names_of
from penstock.store.contract import Slots


class RunningSlots:
    """Counts what runs under each limit; the store says how many that may be."""

    quiet = True
    """Whether there is no limit and nothing held back, so that nobody need be asked."""

    def __init__(self, running: Callable[[], Iterable[Lease]]) -> None:
        self._all_running = running
        self._allowed: Slots = {}
        self._running: Counter[LimitName] = Counter()
        self._held: dict[tuple[LimitName, ...], deque[Lease]] = {}
        self._everyone: dict[tuple[str, int], Lease] = {}
        self._known: dict[tuple[str, str, str, str | None], tuple[LimitName, ...]] = {}

    def allow(self, slots: Slots) -> None:
        """Take the store's word for how many may run; limits may have come or gone."""
        come_or_gone = slots.keys() != self._allowed.keys()
        self._allowed = slots
        self.quiet = not (slots or self._everyone)
        if come_or_gone:
            self._known.clear()
            self._running.clear()
            for lease in self._all_running():
                self._running.update(self._limits(lease))
            for lease in self.clear():
                self.hold(lease)

    @property
    def fewest(self) -> int:
        """The smallest number allowed under any limit; 0 without one."""
        return min(self._allowed.values(), default=0)

    def allows(self, lease: Lease) -> bool:
        """Whether a lease may start now."""
        return not self._allowed or self._have_room(self._limits(lease))

    def take(self, lease: Lease) -> None:
        """A lease starts."""
        if self._allowed:
            for name in self._limits(lease):
                self._running[name] += 1

    def free(self, lease: Lease) -> None:
        """A lease has ended."""
        if self._allowed:
            for name in self._limits(lease):
                self._running[name] -= 1

    def hold(self, lease: Lease) -> None:
        """Keep a lease until one of its own kind has ended."""
        self.quiet = False
        self._everyone[lease.id, lease.fence] = lease
        self._held.setdefault(self._limits(lease), deque()).append(lease)

    def next(self) -> Lease | None:
        """A lease that was held back and may start now."""
        for limits, leases in self._held.items():
            if self._have_room(limits):
                lease = leases.popleft()
                del self._everyone[lease.id, lease.fence]
                if not leases:
                    del self._held[limits]
                return lease
        return None

    def held(self) -> list[Lease]:
        """All leases that are held back; safe to call from any thread."""
        return list(self._everyone.values())

    def drop(self, lost: Collection[tuple[str, int]]) -> None:
        """Forget leases that were lost; each is an id and a fence."""
        if not self._everyone.keys().isdisjoint(lost):
            kept = [lease for lease in self.clear() if (lease.id, lease.fence) not in lost]
            for lease in kept:
                self.hold(lease)

    def clear(self) -> list[Lease]:
        """Let go of all that is held back, and return it."""
        held = self.held()
        self._held.clear()
        self._everyone.clear()
        return held

    def _have_room(self, limits: tuple[LimitName, ...]) -> bool:
        for name in limits:
            allowed = self._allowed.get(name)
            if allowed is not None and self._running[name] >= allowed:
                return False
        return True

    def _limits(self, lease: Lease) -> tuple[LimitName, ...]:
        """The limits a lease is under; looked up, for it is asked several times for every job."""
        lane = (lease.queue, lease.tenant_id, lease.type, lease.limit_key)
        limits = self._known.get(lane)
        if limits is None:
            names = names_of(*lane)
            limits = self._known[lane] = tuple(name for name in names if name in self._allowed)
        return limits
