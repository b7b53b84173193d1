"""A schedule: which job is enqueued again and again, when, and what becomes of missed times."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import MsgspecError, Struct
from msgspec.json import decode, encode

from penstock.model.clock import iso
from penstock.model.cron import aware, find_zone, parse_cron
from penstock.model.errors import InvalidSchedule
from penstock.model.ids import derived_id
from penstock.model.job import NewJob


class ScheduleKind(StrEnum):
    """How a schedule tells its times."""

    CRON = "cron"
    INTERVAL = "interval"
    ONCE = "once"


class Misfire(StrEnum):
    """What to do about times that passed while nobody was there to act on them."""

    SKIP = "skip"
    ONE = "one"
    ALL = "all"


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as the store keeps it; times are UTC milliseconds, documents are JSON text.

    `payload` is a template and `options` the fields of the `NewJob` to enqueue. `revision` grows
    with every change, so that two processes never act on the same state of it.
    """

    id: str
    name: str
    type: str
    kind: ScheduleKind
    tenant_id: str = ""
    payload: str = "{}"
    options: str = "{}"
    expression: str | None = None
    interval_ms: int | None = None
    zone: str = "UTC"
    misfire: Misfire = Misfire.ONE
    enabled: bool = True
    starts_at: int | None = None
    ends_at: int | None = None
    expires_at: int | None = None
    max_runs: int | None = None
    run_count: int = 0
    last_run_at: int | None = None
    next_run_at: int | None = None
    by_operator: bool = False
    created_by: str | None = None
    metadata: str | None = None
    created_at: int = 0
    updated_at: int = 0
    revision: int = 0


NAMES = ("tick", "tick.date", "tick.local", "tick.ms", "run", "name", "previous")
_TOKEN = re.compile(r"\{\{\{\{|\}\}\}\}|\{\{\s*([^{}]*?)\s*\}\}")
_BRACES = "{{"


def render(schedule: Schedule, tick: int, run: int, previous: int | None) -> str:
    """The payload of one tick's job."""
    if _BRACES not in schedule.payload and "\\u" not in schedule.payload:
        return schedule.payload
    try:
        template = decode(schedule.payload)
    except MsgspecError as error:
        raise InvalidSchedule("payload", schedule.payload, f"valid JSON ({error})") from error
    return encode(_filled(template, values_of(schedule, tick, run, previous))).decode()


def values_of(schedule: Schedule, tick: int, run: int, previous: int | None) -> dict[str, Any]:
    """What the placeholders stand for at one tick."""
    local = aware(tick, find_zone(schedule.zone))
    return {
        "tick": iso(tick),
        "tick.date": local.date().isoformat(),
        "tick.local": local.isoformat(timespec="seconds"),
        "tick.ms": tick,
        "run": run,
        "name": schedule.name,
        "previous": None if previous is None else iso(previous),
    }


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        return _filled_text(template, values)
    if isinstance(template, dict):
        return {name: _filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    return template


def _filled_text(text: str, values: Mapping[str, Any]) -> Any:
    whole = _TOKEN.fullmatch(text)
    if whole is not None and whole[1] is not None:
        return _value(whole, values)
    return _TOKEN.sub(lambda found: _text(found, values), text)


def _text(found: re.Match[str], values: Mapping[str, Any]) -> str:
    if found[1] is None:
        return found[0][:2]
    value = _value(found, values)
    return "" if value is None else str(value)


def _value(found: re.Match[str], values: Mapping[str, Any]) -> Any:
    if found[1] not in values:
        known = ", ".join(NAMES)
        raise InvalidSchedule(
            "placeholder", found[0], f"one of {known} (four braces stand for two that stay)"
        )
    return values[found[1]]


MOST_AT_ONCE = 1_000
GRACE_MS = 60_000


class Due(NamedTuple):
    """The ticks to fire now, oldest first, and the one to wait for."""

    ticks: list[int]
    next: int | None


def first_tick(schedule: Schedule, now: int) -> int | None:
    """The tick a new schedule waits for; a start or a moment that is just now counts."""
    return next_tick(schedule, now if schedule.kind is ScheduleKind.CRON else now - 1)


def next_tick(schedule: Schedule, after: int) -> int | None:
    """The first tick after a moment, within the schedule's start, end and expiry."""
    if schedule.starts_at is not None:
        after = max(after, schedule.starts_at - 1)
    tick = _unbounded(schedule, after)
    if tick is None or (schedule.ends_at is not None and tick > schedule.ends_at):
        return None
    return None if schedule.expires_at is not None and tick >= schedule.expires_at else tick


def next_ticks(schedule: Schedule, after: int, count: int) -> list[int]:
    """The next ticks, for people to look at; no more than the schedule's runs allow."""
    found: list[int] = []
    tick = next_tick(schedule, after)
    while tick is not None and len(found) < min(count, _runs_left(schedule, count)):
        found.append(tick)
        tick = next_tick(schedule, tick)
    return found


def due_ticks(schedule: Schedule, now: int) -> Due:
    """What to fire of all that has come up to now, as the schedule's misfire policy says.

    `all` fires every missed tick, a thousand in one go; `one` only the latest; `skip` only the
    latest, and that only while it is fresh: at most a minute or half its period late.
    """
    tick = schedule.next_run_at
    if tick is None or tick > now:
        return Due([], tick)
    left = _runs_left(schedule, MOST_AT_ONCE)
    if left <= 0:
        return Due([], None)
    if schedule.misfire is Misfire.ALL:
        return _every(schedule, tick, now, left)
    latest = _latest(schedule, tick, now)
    following = next_tick(schedule, latest)
    if schedule.misfire is Misfire.SKIP and now - latest > _grace(latest, following):
        return Due([], following)
    return Due([latest], following if left > 1 else None)


def _unbounded(schedule: Schedule, after: int) -> int | None:
    start = schedule.starts_at or 0
    if schedule.kind is ScheduleKind.CRON:
        return parse_cron(schedule.expression or "").next_after(after, find_zone(schedule.zone))
    if schedule.kind is ScheduleKind.ONCE:
        return start if start > after else None
    interval = max(schedule.interval_ms or 0, 1)
    # Counted from the start, never from the last run, so that nothing drifts.
    return start + max(0, (after - start) // interval + 1) * interval


def _runs_left(schedule: Schedule, most: int) -> int:
    return most if schedule.max_runs is None else min(most, schedule.max_runs - schedule.run_count)


def _every(schedule: Schedule, tick: int, now: int, left: int) -> Due:
    ticks: list[int] = []
    upcoming: int | None = tick
    while upcoming is not None and upcoming <= now and len(ticks) < left:
        ticks.append(upcoming)
        upcoming = next_tick(schedule, upcoming)
    done = schedule.max_runs is not None and schedule.run_count + len(ticks) >= schedule.max_runs
    return Due(ticks, None if done else upcoming)


def _latest(schedule: Schedule, tick: int, now: int) -> int:
    """The last tick up to now, found by halving: a month of missed seconds is not walked."""
    low, high = tick, now
    while low < high:
        upcoming = next_tick(schedule, (low + high) // 2)
        if upcoming is not None and upcoming <= now:
            low = tick = upcoming
        else:
            high = (low + high) // 2
    return tick


def _grace(latest: int, following: int | None) -> int:
    return GRACE_MS if following is None else min(GRACE_MS, (following - latest) // 2)


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
