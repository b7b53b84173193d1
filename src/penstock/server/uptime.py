"""Whether there were enough workers: looked at every ten seconds, and remembered for a week."""

from collections import deque

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.service import Service
from penstock.store.contract import Store
from penstock.store.contract.metrics import DAY_MS, HOUR_MS, MINUTE_MS
from penstock.store.contract.upkeep import SILENT_AFTER_MS

EVERY_SECONDS = 10.0
KIND = "uptime"
KEPT_MS = 8 * DAY_MS


class Looks(Struct, frozen=True, kw_only=True):
    """How often somebody looked, and how often enough workers were there."""

    looks: int = 0
    good: int = 0

    def __add__(self, other: "Looks") -> "Looks":
        return Looks(looks=self.looks + other.looks, good=self.good + other.good)


class Uptime(Service):
    """Counts looks minute by minute; once a minute they go into the store, hour by hour.

    Several servers add to the same hours: each of them saw its share of the time.
    """

    name = "uptime"

    def __init__(self, store: Store, minimum: int) -> None:
        super().__init__(EVERY_SECONDS)
        self._store = store
        self._minimum = minimum
        self._minutes: deque[tuple[int, Looks]] = deque(maxlen=HOUR_MS // MINUTE_MS)
        self._hours: dict[int, Looks] = {}
        self._unkept: dict[int, Looks] = {}
        self._kept_minute = 0
        self._began: int | None = None

    async def run_once(self) -> None:
        """Look who is alive; a store that does not answer says nothing about the workers."""
        workers = await self._store.workers.list()
        enough = sum(worker.alive for worker in workers) >= self._minimum
        now = self._store.clock.now()
        if self._began is None:
            self._began = now
        # Workers that start together with this server have not said a word yet.
        if enough or now >= self._began + SILENT_AFTER_MS:
            self.note(now, enough=enough)
        if now // MINUTE_MS != self._kept_minute:
            await self.keep()
            self._kept_minute = now // MINUTE_MS

    def note(self, now: int, *, enough: bool) -> None:
        """Count what one look found."""
        look = Looks(looks=1, good=int(enough))
        minute, hour = now // MINUTE_MS, now // HOUR_MS
        counted = self._minutes.pop()[1] if self._is_last(minute) else Looks()
        self._minutes.append((minute, counted + look))
        self._unkept[hour] = self._unkept.get(hour, Looks()) + look

    async def keep(self) -> None:
        """Add what was counted to the hours in the store, and read them again."""
        for hour, seen in sorted(self._unkept.items()):
            if await self._add(hour, seen):
                del self._unkept[hour]
        now = self._store.clock.now()
        found = await self._store.records.list(KIND, after=_name((now - KEPT_MS) // HOUR_MS))
        self._hours = {int(each.name): decode(each.document, type=Looks) for each in found}

    def share(self, span_ms: int) -> float | None:
        """The part of all looks in a window that found enough workers; none before the first.

        Up to an hour it is what this process saw itself; beyond that whole hours are counted.
        """
        now = self._store.clock.now()
        if span_ms <= HOUR_MS:
            first = (now - span_ms) // MINUTE_MS
            found = [seen for minute, seen in self._minutes if minute >= first]
        else:
            first = (now - span_ms) // HOUR_MS
            hours = [*self._hours.items(), *self._unkept.items()]
            found = [seen for hour, seen in hours if hour >= first]
        seen = sum(found, Looks())
        return seen.good / seen.looks if seen.looks else None

    async def _add(self, hour: int, seen: Looks) -> bool:
        """Whether it could be added; another server may have been quicker, and it waits then."""
        record = await self._store.records.get(KIND, _name(hour))
        before = Looks() if record is None else decode(record.document, type=Looks)
        written = await self._store.records.put(
            KIND,
            _name(hour),
            encode(before + seen).decode(),
            revision=0 if record is None else record.revision,
            expires_in_ms=KEPT_MS,
        )
        return written is not None

    def _is_last(self, minute: int) -> bool:
        return bool(self._minutes) and self._minutes[-1][0] == minute


def _name(hour: int) -> str:
    """Hours sort by name as they do by time."""
    return f"{hour:09d}"
