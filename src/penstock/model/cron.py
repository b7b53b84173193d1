"""Cron expressions: which moments they name in a time zone, on the nights clocks change too."""

import re
from bisect import bisect_left
from calendar import monthrange
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from penstock.model.errors import InvalidSchedule

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of naive local and UTC arithmetic
_MILLISECOND = timedelta(milliseconds=1)
_SECOND_MS = 1_000


@lru_cache(maxsize=1024)
def find_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, or a sentence with the nearest one."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        from difflib import get_close_matches

        close = get_close_matches(str(name), sorted(available_timezones()), 1)
        hint = f"did you mean {close[0]}?" if close else "or UTC"
        raise InvalidSchedule(
            "zone", name, f"an IANA time zone such as Europe/Berlin ({hint})"
        ) from None


def local_time(ms: int, zone: ZoneInfo) -> datetime:
    """What the clocks of a zone show at a moment, with its `fold`, without the zone."""
    return aware(ms, zone).replace(tzinfo=None)


def aware(ms: int, zone: ZoneInfo) -> datetime:
    """A moment as a time in its zone."""
    return (_EPOCH + ms * _MILLISECOND).replace(tzinfo=UTC).astimezone(zone)


def moment(local: datetime, zone: ZoneInfo, fold: int) -> int:
    """The moment at which a zone's clocks show a time: the first (fold 0) or the second (1)."""
    return (local - _EPOCH) // _MILLISECOND - _offset_ms(local.replace(tzinfo=zone, fold=fold))


def in_gap(local: datetime, zone: ZoneInfo) -> bool:
    """Whether a zone's clocks never show this time."""
    return moment(local, zone, 0) > moment(local, zone, 1)


def gap_end(local: datetime, zone: ZoneInfo) -> int:
    """The first moment after the gap that a time lies in."""
    low, high = moment(local, zone, 1), moment(local, zone, 0)
    before = _offset_ms(aware(low, zone))
    while high - low > _SECOND_MS:
        middle = (low + high) // (2 * _SECOND_MS) * _SECOND_MS
        if _offset_ms(aware(middle, zone)) == before:
            low = middle
        else:
            high = middle
    return high


def _offset_ms(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else offset // _MILLISECOND


LAST_DAY = 32
_PART = re.compile(r"(\*|\?|\w+)(?:-(\w+))?(?:/(\d+))?")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class Field(NamedTuple):
    """What a field of a cron expression may hold."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    first: int = 0

    @property
    def allowed(self) -> str:
        """The rule in words."""
        named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        last = ", or L for the last day" if self is DAY else ""
        return f"made of {self.low} to {self.high}{named}, such as {self.low}, */2 or 1-5{last}"


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of the month", 1, 31)
MONTH = Field("month", 1, 12, _MONTHS, 1)
WEEKDAY = Field("day of the week", 0, 7, _DAYS)


class Values(NamedTuple):
    """The values a field matches, ascending, and whether it was written with a star."""

    values: tuple[int, ...]
    starred: bool


def parse_field(field: Field, text: str, expression: str) -> Values:
    """Read one field; what is wrong with it is said in terms of that field."""
    values: set[int] = set()
    starred = False
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise _refused(field, text, expression)
        starred = starred or found[1] in ("*", "?")
        values.update(_part_values(field, found, text, expression))
    if field is WEEKDAY:
        values = {day % 7 for day in values}
    return Values(tuple(sorted(values)), starred)


def _part_values(field: Field, found: re.Match[str], text: str, expression: str) -> range:
    start, end, step = found[1], found[2], found[3]
    if start == "L" and field is DAY and end is None and step is None:
        return range(LAST_DAY, LAST_DAY + 1)
    if start in ("*", "?"):
        if end is not None or (start == "?" and (step or field not in (DAY, WEEKDAY))):
            raise _refused(field, text, expression)
        low, high = field.low, 6 if field is WEEKDAY else field.high
    else:
        low = _number(field, start, text, expression)
        high = low if end is None else _number(field, end, text, expression)
        if field is WEEKDAY and low > 0 and high == 0:
            high = 7  # FRI-SUN
        if end is None and step is not None:
            high = field.high
        if high < low:
            raise _refused(field, text, expression, "a range from the smaller to the larger value")
    if step is not None and not 1 <= int(step) <= field.high:
        raise _refused(field, text, expression, f"stepped by 1 to {field.high}")
    return range(low, high + 1, int(step or 1))


def _number(field: Field, word: str, text: str, expression: str) -> int:
    upper = word.upper()
    if upper in field.names:
        return field.names.index(upper) + field.first
    if word.isdecimal() and word.isascii() and field.low <= int(word) <= field.high:
        return int(word)
    raise _refused(field, text, expression)


def _refused(
    field: Field, text: str, expression: str, expected: str | None = None
) -> InvalidSchedule:
    return InvalidSchedule(field.name, text, f"{expected or field.allowed} (in {expression!r})")


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
