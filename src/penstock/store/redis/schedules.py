"""Schedules on Redis."""

from collections.abc import Sequence
from typing import Any

from msgspec.json import Decoder
from msgspec.structs import replace

from penstock.model.job import NewJob
from penstock.model.schedule import Schedule
from penstock.store.redis.documents import number
from penstock.store.redis.enqueue import as_arguments
from penstock.store.redis.errors import encoded
from penstock.store.redis.release import decided
from penstock.store.redis.scripts import Scripts

_schedules: Decoder[Schedule] = Decoder(Schedule)


class RedisSchedules:
    """`Schedules` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def put(self, schedule: Schedule) -> Schedule:
        """Create or replace the schedule of this name; counts and last run are kept."""
        return _schedule(
            await self._scripts.call(
                "put_schedule",
                _named(schedule.name, schedule.tenant_id),
                schedule.id,
                encoded(schedule),
                int(schedule.enabled),
                _or_empty(schedule.next_run_at),
                _or_empty(schedule.expires_at),
            )
        )

    async def get(self, name: str, tenant_id: str = "") -> Schedule | None:
        """One schedule, or none."""
        row = await self._scripts.call("get_schedule", _named(name, tenant_id))
        return None if row is None else _schedule(row)

    async def known(self, limit: int = 1000, *, tenant_id: str | None = None) -> list[Schedule]:
        """All schedules, or a tenant's, by name."""
        rows = await self._scripts.call("list_schedules")
        found = [s for s in map(_schedule, rows) if tenant_id in (None, s.tenant_id)]
        found.sort(key=lambda schedule: (schedule.name, schedule.tenant_id))
        return found[:limit]

    async def remove(self, name: str, tenant_id: str = "") -> bool:
        """Delete a schedule."""
        return bool(await self._scripts.call("remove_schedule", _named(name, tenant_id)))

    async def pause(self, name: str, tenant_id: str = "", *, revision: int | None = None) -> bool:
        """Let a schedule fire no more."""
        asked = (_named(name, tenant_id), _or_empty(revision))
        return bool(await self._scripts.call("pause_schedule", *asked))

    async def resume(self, schedule: Schedule, next_run_at: int | None) -> bool:
        """Let a paused schedule fire again."""
        asked = (schedule.id, schedule.revision, _or_empty(next_run_at))
        return bool(await self._scripts.call("resume_schedule", *asked))

    async def due(self, limit: int = 100) -> tuple[list[Schedule], int | None]:
        """Enabled schedules whose time has come, and milliseconds until the next one's."""
        upcoming, rows = await self._scripts.call("due_schedules", limit)
        return [_schedule(row) for row in rows], number(upcoming)

    async def fire(
        self,
        schedule: Schedule,
        jobs: Sequence[NewJob],
        next_run_at: int | None,
        *,
        last_run_at: int | None = None,
    ) -> bool:
        """Enqueue a schedule's jobs and advance it, if it still is as it was seen."""
        seen = (schedule.id, schedule.revision, _or_empty(next_run_at), _or_empty(last_run_at))
        told = as_arguments(jobs) if jobs else ()
        return bool(await decided(self._scripts, "fire_schedule", *seen, *told))

    async def expire(self) -> int:
        """Delete schedules past their expiry."""
        return int(await self._scripts.call("expire_schedules"))


def _named(name: str, tenant_id: str) -> bytes:
    return encoded((tenant_id, name))


def _or_empty(value: int | None) -> int | str:
    return "" if value is None else value


def _schedule(row: Sequence[Any]) -> Schedule:
    """A schedule from its fields, see `lua/parts/schedules.lua`."""
    schedule_id, doc, enabled, next_run_at, run_count, last_run_at, created, updated, revision = row
    return replace(
        _schedules.decode(doc),
        id=schedule_id.decode(),
        enabled=enabled == b"1",
        next_run_at=number(next_run_at),
        run_count=int(run_count),
        last_run_at=number(last_run_at),
        created_at=int(created),
        updated_at=int(updated),
        revision=int(revision),
    )
