"""How many jobs of a type one worker holds and begins: `@app.job(per_worker=5)`.

The limits of a fleet are kept in the store; these are the worker's own. It asks for no more than it
may begin, and other types go on.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.app.job_type import JobType
from penstock.model.job import Lease


class OwnLimits:
    """Says how many jobs of each type a worker may ask the store for."""

    def __init__(
        self,
        types: Mapping[str, JobType[..., ..., Any]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._at_once: dict[str, int] = {}
        self._rates: dict[str, _Rate] = {}
        for name, type_ in types.items():
            if type_.per_worker is not None:
                self._at_once[name] = type_.per_worker
            if type_.rate_per_worker is not None:
                capacity, milliseconds = type_.rate_per_worker
                self._rates[name] = _Rate(capacity, milliseconds / 1000)
        self._limited = {*self._at_once, *self._rates}
        self._short: dict[str, int] = {}
        self._full: set[str] = set()

    def room(self, running: Iterable[Lease], waiting: Iterable[Lease], want: int) -> dict[str, int]:
        """Return how many by type, of the types that have room for fewer than are wanted."""
        if not self._limited:
            return {}
        begun = Counter(lease.type for lease in running)
        held = Counter(lease.type for lease in waiting)
        now = self._now()
        self._short = {}
        for name in self._limited:
            room = want
            if name in self._at_once:
                room = min(room, self._at_once[name] - begun[name] - held[name])
            if name in self._rates:
                # One that waits here will begin, too.
                room = min(room, self._rates[name].left(now) - held[name])
            if room < want:
                self._short[name] = max(0, room)
        return self._short

    def granted(self, leases: Iterable[Lease]) -> None:
        """Hear what the store gave: of a type that has no room left, more may wait."""
        if self._short:
            taken = Counter(lease.type for lease in leases)
            self._full = {name for name, room in self._short.items() if taken[name] >= room}
        else:
            self._full = set()

    def begins(self, lease: Lease) -> None:
        """Count a start."""
        rate = self._rates.get(lease.type)
        if rate is not None:
            rate.starts.append(self._now())

    def may_wait(self, type_: str) -> bool:
        """Whether more of a type may be waiting than the last claim could take."""
        return type_ in self._full

    @property
    def frees_in(self) -> float | None:
        """Seconds until a rate lets more begin of a type of which more may wait; None without."""
        now = self._now()
        return min(
            (self._rates[name].frees_in(now) for name in self._full & self._rates.keys()),
            default=None,
        )


class _Rate:
    """So many starts, at most, in every span of so many seconds."""

    def __init__(self, capacity: int, seconds: float) -> None:
        self._capacity = capacity
        self._seconds = seconds
        self.starts: deque[float] = deque()

    def left(self, now: float) -> int:
        while self.starts and self.starts[0] <= now - self._seconds:
            self.starts.popleft()
        return self._capacity - len(self.starts)

    def frees_in(self, now: float) -> float:
        return 0.0 if self.left(now) > 0 else self.starts[0] + self._seconds - now
