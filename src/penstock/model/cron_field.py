"""One field of a cron expression: `*`, `5`, `1-5`, `*/10`, `MON,WED`, as the set it stands for."""

import re
from typing import NamedTuple

from penstock.model.refused import InvalidSchedule

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
