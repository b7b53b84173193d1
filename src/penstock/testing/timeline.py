"""What would happen in a stretch of time, in order, each thing at its own moment."""

from collections.abc import Awaitable, Callable
from heapq import heappop, heappush

from penstock.app.penstock import Penstock
from penstock.store.contract import Claim
from penstock.testing.clock import FakeClock
from penstock.upkeep.prune import pruning_of
from penstock.upkeep.schedules import fire_due

PAGE = 1_000


class Timeline:
    """Moves a clock from one moment at which something happens to the next.

    `run_due` runs the jobs that may run now, and those that these enqueue.
    """

    def __init__(
        self, app: Penstock, clock: FakeClock, run_due: Callable[[], Awaitable[None]]
    ) -> None:
        self._app = app
        self._clock = clock
        self._run_due = run_due
        self._looked_to: str | None = None
        self._expiries: list[int] = []

    async def play(self, milliseconds: int) -> None:
        """Let everything happen that falls into this time; the clock stays at the last of it."""
        end = self._clock.monotonic() + milliseconds
        await self.happen()
        while True:
            pause = await self._next_in_ms()
            if pause is None or self._clock.monotonic() + pause > end:
                return
            self._clock.advance(pause / 1000)
            await self.happen()

    async def happen(self) -> None:
        """Everything that is due at this moment, and what follows from it at once."""
        await self._passes()
        await self._run_due()
        while await self._passes():
            await self._run_due()

    async def prune(self) -> None:
        """Delete what is past its retention."""
        retention = pruning_of(self._app)
        while (await self._app.store.upkeep.prune(retention)).more:
            pass

    async def _passes(self) -> int:
        """What upkeep does at this moment; how many jobs it changed."""
        upkeep = self._app.store.upkeep
        changed = await fire_due(self._app)
        changed += len(await upkeep.rescue(max_rescues=self._app.settings.max_rescues))
        changed += len(await upkeep.expire())
        return changed + await upkeep.stage()

    async def _next_in_ms(self) -> int | None:
        """Milliseconds until anything can happen; what is due now has happened already."""
        nothing = Claim(owner="nobody:0", types=self._app.types, limit=0, start=0, lease_ms=0)
        waits = [
            (await self._app.store.jobs.claim(nothing)).next_due_in_ms,
            (await self._app.store.schedules.due(1))[1],
            await self._lapse_in_ms(),
            await self._expiry_in_ms(),
        ]
        return min((wait for wait in waits if wait is not None and wait > 0), default=None)

    async def _lapse_in_ms(self) -> int | None:
        """When the first lease of a worker that is gone runs out."""
        lapses: list[int] = []
        for job in await self._app.store.reader.running(PAGE):
            self._note_expiry(job.expires_at)
            lapses.append((job.lease_until or 0) + 1 - self._clock.now())
        return min(lapses, default=None)

    async def _expiry_in_ms(self) -> int | None:
        """When the first waiting job expires; each job is looked at once."""
        reader, now = self._app.store.reader, self._clock.now()
        while page := await reader.waiting(self._looked_to, PAGE):
            self._looked_to = page[-1].id
            for job in page:
                self._note_expiry(job.expires_at)
        while self._expiries and self._expiries[0] <= now:
            heappop(self._expiries)
        return self._expiries[0] - now if self._expiries else None

    def _note_expiry(self, expires_at: int | None) -> None:
        if expires_at is not None:
            heappush(self._expiries, expires_at)
