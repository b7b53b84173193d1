"""Whether there were enough workers: looked at every ten seconds, as long as this server runs."""

from collections import deque

from penstock.service import Service
from penstock.store.contract import Store
from penstock.store.contract.rollups import DAY_MS, MINUTE_MS

EVERY_SECONDS = 10.0


class Uptime(Service):
    """Counts looks, and those that found enough workers, minute by minute for a week."""

    name = "uptime"

    def __init__(self, store: Store, minimum: int) -> None:
        super().__init__(EVERY_SECONDS)
        self._store = store
        self._minimum = minimum
        self._minutes: deque[tuple[int, int, int]] = deque(maxlen=7 * DAY_MS // MINUTE_MS)

    async def run_once(self) -> None:
        """Look who is alive; a store that does not answer says nothing about the workers."""
        workers = await self._store.workers.list()
        alive = sum(worker.alive for worker in workers)
        self.note(self._store.clock.now(), enough=alive >= self._minimum)

    def note(self, now: int, *, enough: bool) -> None:
        """Keep what one look found."""
        minute = now // MINUTE_MS
        looks, good = 0, 0
        if self._minutes and self._minutes[-1][0] == minute:
            _, looks, good = self._minutes.pop()
        self._minutes.append((minute, looks + 1, good + enough))

    def share(self, span_ms: int) -> float | None:
        """The part of all looks in a window that found enough workers; none before the first."""
        first = (self._store.clock.now() - span_ms) // MINUTE_MS
        found = [(looks, good) for minute, looks, good in self._minutes if minute >= first]
        looks = sum(each for each, _ in found)
        return sum(good for _, good in found) / looks if looks else None
