"""The executions a worker has under way, and which leases may start under limits on concurrency."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from enum import Enum, auto

from penstock.app.context import Context
from penstock.app.job_type import JobType
from penstock.model.controls import LimitName, names_of
from penstock.model.job import Lease
from penstock.model.outcome import Settlement
from penstock.store.contract import Slots
from penstock.worker.reports import JobReporter


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


class StopReason(Enum):
    """Why an execution is stopped from outside."""

    TIMEOUT = auto()
    CANCEL = auto()
    SHUTDOWN = auto()
    LOST = auto()


class Running:
    """One lease in the hands of this worker, started or still prefetched."""

    __slots__ = (
        "began_at",
        "cancel_at",
        "context",
        "deadline",
        "executor",
        "interrupt",
        "lease",
        "reason",
        "reporter",
        "settlement",
        "started_at",
        "task",
        "type",
    )

    def __init__(self, lease: Lease, type_: "JobType[..., ..., object]") -> None:
        self.lease = lease
        self.type = type_
        self.context: Context | None = None
        self.reporter: JobReporter | None = None
        self.settlement: Settlement | None = None
        self.task: asyncio.Task[None] | None = None
        self.executor: object = None
        self.started_at = 0
        self.began_at = 0
        self.deadline: int | None = None
        self.cancel_at: int | None = None
        self.reason: StopReason | None = None
        self.interrupt: Callable[[], bool] | None = None

    def begin(self, now: int) -> None:
        """Count the handler's time from here."""
        self.began_at = now
        self.deadline = now + self.lease.timeout_ms

    def judged(self) -> None:
        """Forget what stopped the handler: from here on only its hooks can be stopped."""
        self.reason = self.cancel_at = None
        while self.task is not None and self.task.cancelling():
            self.task.uncancel()

    def stop(self, reason: StopReason) -> None:
        """End the execution as soon as its kind allows."""
        if self.reason is not None:
            return
        self.reason = reason
        interrupted = self.interrupt is not None and self.interrupt()
        if not interrupted and self.task is not None:
            self.task.cancel()

    def request_cancel(self, grace_until: int) -> None:
        """Ask the handler to stop; if it has not by then, it is stopped."""
        if self.settlement is not None:
            return
        if self.context is not None:
            self.context.request_stop()
        if self.cancel_at is None:
            self.cancel_at = grace_until
