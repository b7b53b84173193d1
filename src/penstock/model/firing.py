"""The jobs of a schedule's ticks. Their ids follow from the tick, so no tick is enqueued twice."""

from typing import Any

import msgspec

from penstock.model.ids import derived_id
from penstock.model.job import NewJob
from penstock.model.refused import InvalidSchedule
from penstock.model.schedule import Schedule
from penstock.model.template import render

_OWN = {"id", "type", "payload", "schedule_id", "scheduled_at"}


def options_of(job: NewJob) -> str:
    """The fields of a job that its schedule keeps, as JSON; defaults are left out."""
    plain = NewJob(id="", type="")
    kept = {
        name: value
        for name, value in msgspec.structs.asdict(job).items()
        if name not in _OWN and value != getattr(plain, name)
    }
    return msgspec.json.encode(kept, order="sorted").decode()


def tick_jobs(schedule: Schedule, ticks: list[int]) -> list[NewJob]:
    """One job for each tick."""
    jobs: list[NewJob] = []
    previous = schedule.last_run_at
    for run, tick in enumerate(ticks, schedule.run_count + 1):
        job_id = derived_id(tick, schedule.id)
        jobs.append(tick_job(schedule, job_id, tick, run=run, previous=previous))
        previous = tick
    return jobs


def tick_job(
    schedule: Schedule, job_id: str, tick: int, *, run: int, previous: int | None
) -> NewJob:
    """The job of one tick, due at the tick."""
    try:
        options: dict[str, Any] = msgspec.json.decode(schedule.options, type=dict[str, Any])
        own = {
            "id": job_id,
            "type": schedule.type,
            "payload": render(schedule, tick, run, previous),
            "schedule_id": schedule.id,
            "scheduled_at": tick + int(options.pop("delay_ms", 0)),
        }
        return msgspec.convert(options | own, NewJob)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise InvalidSchedule(
            "options", schedule.options, f"the fields of a job ({error})"
        ) from error
