"""The model of schedules: what is kept of each, and which look at one is still true."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from penstock.model.job import NewJob
from penstock.model.schedule import Schedule
from proof.state_machine.model import StoreModel


class Look(NamedTuple):
    """A schedule as a process saw it, however long ago; `version` is the model's own count."""

    schedule: Schedule
    version: int


class ScheduleModel(StoreModel):
    """`StoreModel` with schedules by name."""

    def __init__(self) -> None:
        super().__init__()
        self.schedules: dict[str, Schedule] = {}
        self.versions: dict[str, int] = {}

    def put(self, schedule: Schedule) -> None:
        """Create or replace a schedule; what has happened to it is kept."""
        before = self.schedules.get(schedule.name)
        if before is not None:
            schedule = replace(
                schedule,
                id=before.id,
                run_count=before.run_count,
                last_run_at=before.last_run_at,
            )
        self._store(schedule)

    def remove(self, name: str) -> bool:
        """Delete a schedule; whether there was one."""
        return self.schedules.pop(name, None) is not None

    def pause(self, name: str) -> bool:
        """Let a schedule fire no more; whether it did."""
        schedule = self.schedules.get(name)
        if schedule is None or not schedule.enabled:
            return False
        self._store(replace(schedule, enabled=False))
        return True

    def resume(self, look: Look, next_run_at: int | None) -> bool:
        """Let a schedule fire again, if it is as it was seen and paused."""
        if not self._true(look) or look.schedule.enabled:
            return False
        self._store(replace(look.schedule, enabled=True, next_run_at=next_run_at))
        return True

    def fire(
        self,
        look: Look,
        jobs: Sequence[NewJob],
        next_run_at: int | None,
        last: int | None,
        now: int,
    ) -> bool:
        """Enqueue and advance, if the schedule is as it was seen."""
        if not self._true(look) or not look.schedule.enabled:
            return False
        created = sum(self.enqueue(job, now).created for job in jobs)
        schedule = look.schedule
        self._store(
            replace(
                schedule,
                run_count=schedule.run_count + created,
                last_run_at=schedule.last_run_at if last is None else last,
                next_run_at=next_run_at,
            )
        )
        return True

    def due(self, now: int) -> set[str]:
        """The schedules whose time has come."""
        return {
            schedule.name
            for schedule in self.schedules.values()
            if schedule.enabled and schedule.next_run_at is not None and schedule.next_run_at <= now
        }

    def _true(self, look: Look) -> bool:
        there = self.schedules.get(look.schedule.name)
        same = there is not None and there.id == look.schedule.id
        return same and self.versions[look.schedule.name] == look.version

    def _store(self, schedule: Schedule) -> None:
        self.schedules[schedule.name] = replace(schedule, revision=0)
        self.versions[schedule.name] = self.versions.get(schedule.name, 0) + 1
