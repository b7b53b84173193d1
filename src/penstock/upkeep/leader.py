"""Leader election through the store: one process runs the passes, the others stand by."""

import structlog

from penstock.app.penstock import Penstock
from penstock.service import Service

log = structlog.get_logger("penstock.upkeep")

ROLE = "upkeep"
TERM_SECONDS = 15.0


class Leader(Service):
    """Keeps, or keeps trying to get, the leadership.

    Whether it leads or not, it notes when the store came back into its reach after it was stalled
    or cut off for longer than a renewal.
    """

    name = "leader"

    def __init__(self, app: Penstock, owner: str, term: float = TERM_SECONDS) -> None:
        super().__init__(term / 3)
        self._upkeep = app.store.upkeep
        self._clock = app.store.clock
        self._owner = owner
        self._term_ms = int(term * 1000)
        self._until: int | None = None
        settings = app.settings
        longest_gap = min(self.interval, settings.lease / 2) + settings.renew_interval
        self._longest_gap_ms = int(longest_gap * 1000)
        self._reached_at: int | None = None
        self.back_at: int | None = None

    @property
    def leads(self) -> bool:
        """Whether the term this process was given still runs."""
        return self._until is not None and self._clock.monotonic() < self._until

    async def run_once(self) -> None:
        """Take or renew the term."""
        asked = self._clock.monotonic()
        led = self.leads
        try:
            granted = await self._upkeep.lead(ROLE, self._owner, self._term_ms)
        except Exception:
            self._until = None
            raise
        self._note_reach()
        self._until = asked + self._term_ms if granted else None
        if self.leads and not led:
            log.info("leads", worker_id=self._owner)

    async def stop(self) -> None:
        """Let somebody else lead at once."""
        await super().stop()
        if self.leads:
            self._until = None
            await self._upkeep.resign(ROLE, self._owner)

    def _note_reach(self) -> None:
        now = self._clock.monotonic()
        if self._reached_at is not None and now - self._reached_at > self._longest_gap_ms:
            self.back_at = now
        self._reached_at = now
