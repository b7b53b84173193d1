"""Schedules in SQL."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from penstock.model.job import NewJob
from penstock.model.schedule import Misfire, Schedule, ScheduleKind
from penstock.store.relational.enqueue import enqueue
from penstock.store.relational.transaction import StorePart, Transaction, readable, reads, writes

_COLUMNS = Schedule.__struct_fields__


class RelationalSchedules(StorePart):
    """`Schedules` in SQL."""

    @writes
    def put(self, tx: Transaction, schedule: Schedule) -> Schedule:
        """Create or replace the schedule of this name; counts and last run are kept."""
        tx.run("put_schedule", asdict(schedule) | {"now": tx.now})
        stored = _get(tx, schedule.name, schedule.tenant_id)
        assert stored is not None
        return stored

    @reads
    def get(self, tx: Transaction, name: str, tenant_id: str = "") -> Schedule | None:
        """One schedule, or None."""
        return _get(tx, name, tenant_id)

    @reads
    def known(
        self, tx: Transaction, limit: int = 1000, *, tenant_id: str | None = None
    ) -> list[Schedule]:
        """All schedules, or those of one tenant, by name."""
        rows = tx.rows("schedules", {"tenant_id": tenant_id, "limit": limit})
        return [_schedule(row) for row in rows]

    @writes
    def remove(self, tx: Transaction, name: str, tenant_id: str = "") -> bool:
        """Delete a schedule."""
        return tx.many("delete_schedule", ((tenant_id, name),)) == 1

    @writes
    def pause(
        self, tx: Transaction, name: str, tenant_id: str = "", *, revision: int | None = None
    ) -> bool:
        """Let a schedule fire no more."""
        row = {"name": name, "tenant_id": tenant_id, "revision": revision, "now": tx.now}
        return tx.many("pause_schedule", (row,)) == 1

    @writes
    def resume(self, tx: Transaction, schedule: Schedule, next_run_at: int | None) -> bool:
        """Let a paused schedule fire again."""
        row = {"id": schedule.id, "revision": schedule.revision, "next_run_at": next_run_at}
        return tx.many("resume_schedule", (row | {"now": tx.now},)) == 1

    @reads
    def due(self, tx: Transaction, limit: int = 100) -> tuple[list[Schedule], int | None]:
        """Enabled schedules whose time has come, and milliseconds until the next one's."""
        rows = tx.rows("due_schedules", {"now": tx.now, "limit": limit})
        upcoming = tx.value("next_schedule", (tx.now,))
        return [_schedule(row) for row in rows], None if upcoming is None else upcoming - tx.now

    @writes
    def fire(
        self,
        tx: Transaction,
        schedule: Schedule,
        jobs: Sequence[NewJob],
        next_run_at: int | None,
        *,
        last_run_at: int | None = None,
    ) -> bool:
        """Advance a schedule, if it still is as it was seen, and only then enqueue its jobs."""
        row = {"id": schedule.id, "revision": schedule.revision, "now": tx.now}
        row |= {"next_run_at": next_run_at, "last_run_at": last_run_at}
        if tx.many("advance_schedule", (row,)) != 1:
            return False
        if jobs:
            created = sum(answer.created for answer in enqueue(tx, jobs))
            tx.run("count_schedule_runs", (created, schedule.id))
        return True

    async def expire(self) -> int:
        """Delete schedules past their expiry; it looks first, so that most passes write nothing."""
        if not await self.db.read(lambda tx: tx.value("any_expired_schedule", (tx.now,))):
            return 0
        return await self.db.write(lambda tx: tx.many("delete_expired_schedules", ((tx.now,),)))


def _get(tx: Transaction, name: str, tenant_id: str) -> Schedule | None:
    row = tx.row("schedule", (tenant_id, name))
    return None if row is None else _schedule(row)


def _schedule(row: tuple[Any, ...]) -> Schedule:
    fields = dict(zip(_COLUMNS, row, strict=True))
    for name in ("payload", "options"):
        fields[name] = readable(fields[name])
    for name in ("enabled", "by_operator"):
        fields[name] = bool(fields[name])
    fields["kind"] = ScheduleKind(fields["kind"])
    fields["misfire"] = Misfire(fields["misfire"])
    return Schedule(**fields)
