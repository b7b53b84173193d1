"""Schedules, and the one way to act on them: compare, advance and enqueue in one transaction."""

from collections.abc import Sequence
from typing import Protocol

from penstock.model.job import NewJob
from penstock.model.schedule import Schedule


class Schedules(Protocol):
    """Kept by name within a tenant."""

    async def put(self, schedule: Schedule) -> Schedule:
        """Create or replace the schedule of this name; counts and last run are kept.

        Only `id`, `run_count`, `last_run_at`, `created_at` and `revision` stay the store's affair.
        """
        ...

    async def get(self, name: str, tenant_id: str = "") -> Schedule | None:
        """One schedule, or none."""
        ...

    async def known(self, limit: int = 1000, *, tenant_id: str | None = None) -> list[Schedule]:
        """All schedules, or those of one tenant, by name."""
        ...

    async def remove(self, name: str, tenant_id: str = "") -> bool:
        """Delete a schedule; jobs it enqueued stay. Whether there was one."""
        ...

    async def pause(self, name: str, tenant_id: str = "", *, revision: int | None = None) -> bool:
        """Let a schedule fire no more; whether there was a running one (of that revision)."""
        ...

    async def resume(self, schedule: Schedule, next_run_at: int | None) -> bool:
        """Let a paused schedule fire again from a time on, if it still is as it was seen."""
        ...

    async def due(self, limit: int = 100) -> tuple[list[Schedule], int | None]:
        """Enabled schedules whose time has come, the most overdue first.

        With them come the milliseconds until the time of the next one, if there is one.
        """
        ...

    async def fire(
        self,
        schedule: Schedule,
        jobs: Sequence[NewJob],
        next_run_at: int | None,
        *,
        last_run_at: int | None = None,
    ) -> bool:
        """Enqueue a schedule's jobs and advance it, if it still is as it was seen.

        False, and nothing is done, when its revision has changed: somebody else acted on it.
        A job that was there already is not counted as a run again.
        """
        ...

    async def expire(self) -> int:
        """Delete schedules past their expiry; how many."""
        ...
