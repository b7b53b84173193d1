"""Cron expressions: which moments they name in a time zone, on the nights clocks change too.

With the hour fixed (`30 2 * * *`) a time that a gap leaves out runs right after the gap, and one
that comes twice runs the first time. With a star for the hour (`*/30 * * * *`) the expression
follows elapsed time: nothing in a gap, both passes of a repeated hour.
"""

from bisect import bisect_left
from calendar import monthrange
from datetime import MAXYEAR, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from penstock.model.cron_field import (
    DAY,
    HOUR,
    LAST_DAY,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    Values,
    parse_field,
)
from penstock.model.refused import InvalidSchedule
from penstock.model.zone import gap_end, in_gap, local_time, moment

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
_SECOND = timedelta(seconds=1)
# 29 February falls on a given weekday every 28 years, or 40 around a year such as 2100; nothing
# comes more rarely.
_MONTHS_AHEAD = 41 * 12
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a local time


class Cron(NamedTuple):
    """A parsed expression; `parse_cron` makes it."""

    seconds: Values
    minutes: Values
    hours: Values
    days: Values
    months: Values
    weekdays: Values

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether a repeated hour ticks twice, because the hour is a star."""
        return self.hours.starred and len(self.hours.values) > 1

    def next_after(self, ms: int, zone: ZoneInfo) -> int | None:
        """The first moment after this one that the expression names."""
        if not self.follows_elapsed_time:
            return self._next_fixed(ms, zone)
        found = (self._next_elapsed(ms, zone, fold) for fold in (0, 1))
        return min((tick for tick in found if tick is not None), default=None)

    def _next_fixed(self, ms: int, zone: ZoneInfo) -> int | None:
        local = self.following(local_time(ms, zone))
        while local is not None:
            tick = gap_end(local, zone) if in_gap(local, zone) else moment(local, zone, 0)
            if tick > ms:
                return tick
            local = self.following(local)
        return None

    def _next_elapsed(self, ms: int, zone: ZoneInfo, fold: int) -> int | None:
        """The next tick among the first passes of all hours, or among the last passes.

        Either row ascends with local time; only a repeated hour is in one and not in the other.
        """
        start = local_time(ms, zone)
        ahead = moment(start, zone, fold) - ms
        local = self.following(start - max(ahead, 0) * timedelta(milliseconds=1))
        while local is not None:
            if in_gap(local, zone):
                local = self.following(local_time(gap_end(local, zone), zone) - _SECOND)
                continue
            tick = moment(local, zone, fold)
            if tick > ms:
                return tick
            local = self.following(local)
        return None

    def following(self, local: datetime) -> datetime | None:
        """The next local time that matches, whatever the zone; none if no year has one."""
        start = local.replace(microsecond=0, fold=0) + _SECOND
        time = self._time_from(start.hour, start.minute, start.second)
        year, month, day = start.year, start.month, start.day + (time is None)
        for _ in range(_MONTHS_AHEAD):
            if found := self._day_from(year, month, day):
                same = time is not None and (year, month, found) == start.timetuple()[:3]
                hour, minute, second = time if time and same else self._first_time()
                return datetime(year, month, found, hour, minute, second)  # noqa: DTZ001
            year, month, day = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
            if year > MAXYEAR:
                break
        return None

    def _first_time(self) -> tuple[int, int, int]:
        return self.hours.values[0], self.minutes.values[0], self.seconds.values[0]

    def _time_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        """The first time of day that matches, not before this one."""
        _, first_minute, first_second = self._first_time()
        if hour in self.hours.values:
            if minute in self.minutes.values:
                at = _from(self.seconds.values, second)
                if at is not None:
                    return hour, minute, at
            at = _from(self.minutes.values, minute + 1)
            if at is not None:
                return hour, at, first_second
        at = _from(self.hours.values, hour + 1)
        return None if at is None else (at, first_minute, first_second)

    def _day_from(self, year: int, month: int, day: int) -> int | None:
        if month not in self.months.values:
            return None
        weekday_of_first, length = monthrange(year, month)
        return next(
            (
                each
                for each in range(day, length + 1)
                if self._matches_day(each, length, (weekday_of_first + each) % 7)
            ),
            None,
        )

    def _matches_day(self, day: int, length: int, weekday: int) -> bool:
        by_day = day in self.days.values or (day == length and LAST_DAY in self.days.values)
        by_weekday = weekday in self.weekdays.values
        if self.days.starred or self.weekdays.starred:
            return by_day and by_weekday
        return by_day or by_weekday


@lru_cache(maxsize=4096)
def parse_cron(expression: str) -> Cron:
    """Read an expression of 5 fields, or 6 with seconds first, or an alias such as `@daily`."""
    text = ALIASES.get(expression.strip().lower(), expression)
    words = text.split()
    if len(words) not in (5, 6):
        raise InvalidSchedule(
            "cron",
            expression,
            "5 fields (minute, hour, day of the month, month, day of the week), 6 with seconds "
            f"first, or one of {', '.join(ALIASES)}",
        )
    if len(words) == 5:
        words.insert(0, "0")
    fields = zip(_FIELDS, words, strict=True)
    cron = Cron(*(parse_field(field, word, expression) for field, word in fields))
    if cron.following(_SOME_DAY) is None:
        raise InvalidSchedule(
            "cron", expression, "a date that exists; no month it names has such a day"
        )
    return cron


def _from(values: tuple[int, ...], low: int) -> int | None:
    place = bisect_left(values, low)
    return values[place] if place < len(values) else None
