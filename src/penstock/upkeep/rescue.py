"""Freeing jobs whose worker is gone."""

import structlog

from penstock.app.penstock import Penstock
from penstock.service import Service
from penstock.store.contract import Rescued
from penstock.upkeep.leader import Leader

log = structlog.get_logger("penstock.upkeep")


class Rescue(Service):
    """Takes away leases that ran out.

    A rescuer that was itself stalled or cut off cannot tell dead workers from ones that were cut
    off with it, so it first gives them one full lease to renew; a fresh one gives them one renewal.
    """

    name = "rescue"

    def __init__(self, app: Penstock, leader: Leader) -> None:
        settings = app.settings
        super().__init__(min(settings.rescue_interval, settings.lease / 2))
        self._upkeep = app.store.upkeep
        self._clock = app.store.clock
        self._leader = leader
        self._max_rescues = settings.max_rescues
        self._lease_ms = int(settings.lease * 1000)
        self._renew_ms = int(settings.renew_interval * 1000)
        self._not_before: int | None = None

    async def run_once(self) -> None:
        """Rescue what may be rescued."""
        # Asked for anew: to lead is to have reached the store in this moment.
        if self._leader.leads:
            await self._leader.run_once()
        if not self._leader.leads:
            return
        now = self._clock.monotonic()
        if self._not_before is None:
            self._not_before = now + self._renew_ms
        if self._leader.back_at is not None:
            self._not_before = max(self._not_before, self._leader.back_at + self._lease_ms)
        if now >= self._not_before:
            report(await self._upkeep.rescue(max_rescues=self._max_rescues))


def report(rescued: list[Rescued]) -> None:
    """Say what was rescued."""
    for lease in rescued:
        log.warning(
            "lease_rescued",
            job_id=lease.id,
            job_type=lease.type,
            worker_id=lease.owner,
            fate=lease.fate.value,
        )
