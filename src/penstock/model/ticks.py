"""When a schedule ticks: arithmetic on its times, without a clock."""

from typing import NamedTuple

from penstock.model.cron import parse_cron
from penstock.model.schedule import Misfire, Schedule, ScheduleKind
from penstock.model.zone import find_zone

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
