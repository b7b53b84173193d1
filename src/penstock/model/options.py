"""The options of a call: what each may be, and what of it the job holds.

`NewJob` annotates its fields with them; everything else that lists options is made from there.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, ClassVar

import msgspec
from msgspec import Raw, Struct

from penstock.model.clock import EARLIEST, LATEST, iso, milliseconds
from penstock.model.dependency import Edge
from penstock.model.errors import InvalidOption

MAX_NAME = 128
"""Of a type, a queue, a category, a schedule, a token."""

MAX_TEXT = 255
"""Of a key, a tag, a tenant, a workspace."""

MAX_TAGS = 32
MAX_METADATA = 65_536
MAX_EDGES = 1_000
MAX_SECONDS = 1e10
MAX_KEPT = 1_000_000

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.:@/-]{{0,{MAX_NAME - 1}}}")
_LONGEST_NUMBER = 10**MAX_TEXT


class Option(Struct, frozen=True):
    """One option of a call; its kind says what may be written.

    `name` is what callers write where the job's field is called otherwise. A schedule has none of
    those that are not `in_schedules`. Those that are `local` are for code beside the store: over
    the network, the server says them. `field`, `default` and `optional` are those of the job.
    """

    about: str
    name: str = ""
    in_schedules: bool = True
    local: bool = False
    common: bool = False
    """Whether a form shows it at first sight."""

    field: str = ""
    default: Any = None
    optional: bool = False

    kind: ClassVar[Any] = str
    """How JSON has it."""

    unit: ClassVar[str] = ""
    example: ClassVar[str] = ""
    """How a person may type it, where that is not plain."""

    @property
    def expected(self) -> str:
        """What it must be, to end a sentence with."""
        return "a text"

    @property
    def bounds(self) -> dict[str, Any]:
        """The limits of its values, in the words of JSON schema libraries."""
        return {}

    @property
    def choices(self) -> list[str]:
        """All that it may be, where that is a few words."""
        return []

    def stored(self, value: Any) -> Any:
        """Return what a job holds for a value, or refuse it in one sentence."""
        if value is None and self.optional:
            return None
        if isinstance(value, Enum):
            value = value.value
        elif isinstance(value, str):
            value = str.__str__(value)  # of a subclass, which not every store takes
        return self._take(value)

    def written(self, value: Any) -> Any:
        """Return what a caller would write, as JSON has it, for what a job holds."""
        return value

    def refused(self, value: Any, expected: str | None = None) -> InvalidOption:
        """Say what is wrong with a value."""
        return InvalidOption(self.name, value, expected or self.expected)

    def _take(self, value: Any) -> Any:
        raise NotImplementedError


class Name(Option, frozen=True):
    """A name that a URL, a log line and a shell take as it is."""

    @property
    def expected(self) -> str:
        return f"a name of up to {MAX_NAME} letters, digits and _ . : @ / -, starting with one"

    @property
    def bounds(self) -> dict[str, Any]:
        return {"min_length": 1, "max_length": MAX_NAME}

    def _take(self, value: Any) -> str:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise self.refused(value)
        return value


class Text(Option, frozen=True, kw_only=True):
    """A text; a whole number is taken, too, because many rows are known by one."""

    may_be_empty: bool = False

    @property
    def expected(self) -> str:
        return f"a text of 1 to {MAX_TEXT} characters"

    @property
    def bounds(self) -> dict[str, Any]:
        least = {} if self.may_be_empty else {"min_length": 1}
        return least | {"max_length": MAX_TEXT}

    def _take(self, value: Any) -> str:
        if value is None:
            raise self.refused(value, "a text, empty for none")
        value = _identifier(value)
        if self.may_be_empty and value == "":
            return ""
        if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
            raise self.refused(value)
        return check_text(self.name, value)


class Whole(Option, frozen=True, kw_only=True):
    """A whole number."""

    low: int
    high: int
    meaning: str = ""

    kind = int

    @property
    def expected(self) -> str:
        return f"a whole number from {self.low} to {self.high}{self.meaning}"

    @property
    def bounds(self) -> dict[str, Any]:
        return {"ge": self.low, "le": self.high}

    def _take(self, value: Any) -> int:
        if not is_number(value) or not isinstance(value, int):
            raise self.refused(value)
        if not self.low <= value <= self.high:
            raise self.refused(value)
        return int(value)


class Factor(Option, frozen=True, kw_only=True):
    """What something is multiplied by."""

    low: float
    high: float

    kind = float

    @property
    def expected(self) -> str:
        return f"a multiplier from {self.low:g} to {self.high:g}"

    @property
    def bounds(self) -> dict[str, Any]:
        return {"ge": self.low, "le": self.high}

    def _take(self, value: Any) -> float:
        if not is_number(value) or not self.low <= value <= self.high:
            raise self.refused(value)
        return float(value)


class Seconds(Option, frozen=True, kw_only=True):
    """A duration, which a job holds in milliseconds."""

    above_zero: bool = False

    kind = float
    unit = "seconds"

    @property
    def expected(self) -> str:
        return f"a number of seconds{' above 0' if self.above_zero else ', 0 or more'}"

    @property
    def bounds(self) -> dict[str, Any]:
        return {"gt" if self.above_zero else "ge": 0, "lt": MAX_SECONDS}

    def written(self, value: Any) -> Any:
        return value // 1000 if value % 1000 == 0 else value / 1000

    def _take(self, value: Any) -> int:
        if not is_number(value) or not 0 <= value < MAX_SECONDS:
            raise self.refused(value)
        if self.above_zero and value == 0:
            raise self.refused(value)
        return max(int(value * 1000), int(self.above_zero))


FOREVER_MS = int(MAX_SECONDS * 1000)
"""Longer than any duration that can be said."""

_SPAN = re.compile(r"(\d+(?:\.\d+)?) ?(s|m|h|d|w)")
_SPAN_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}


class Keep(Option, frozen=True):
    """How long a job is kept after its end.

    A job holds the milliseconds, 0 to remove it and `FOREVER_MS` never to; or, below 0, how many of
    its type are kept that ended like it.
    """

    kind = bool | int | str
    example = "true, false, 100 or 7d"

    @property
    def expected(self) -> str:
        return "true (remove it), false (never), at most how many to keep, or for how long ('7d')"

    def written(self, value: Any) -> Any:
        if value < 0:
            return -value
        return value == 0 if value in (0, FOREVER_MS) else f"{Seconds('').written(value)}s"

    def _take(self, value: Any) -> int:
        if isinstance(value, str):
            return self._read(value.strip().lower())
        if isinstance(value, bool):
            return 0 if value else FOREVER_MS
        if isinstance(value, timedelta):
            return self._milliseconds(value.total_seconds() * 1000, value)
        if not isinstance(value, int) or not 0 <= value <= MAX_KEPT:
            raise self.refused(value)
        return -value

    def _read(self, text: str) -> int:
        if text in ("true", "false"):
            return self._take(text == "true")
        if text.isdecimal():
            return self._take(int(text))
        span = _SPAN.fullmatch(text)
        if span is None:
            raise self.refused(text)
        return self._milliseconds(float(span[1]) * _SPAN_MS[span[2]], text)

    def _milliseconds(self, value: float, said: Any) -> int:
        if not 0 <= value < FOREVER_MS:
            raise self.refused(said)
        return int(value)


class Moment(Option, frozen=True):
    """A time, which a job holds in milliseconds."""

    kind = datetime
    example = "2030-01-31T08:00"

    @property
    def expected(self) -> str:
        return "a time with its zone, such as datetime.now(UTC)"

    def written(self, value: Any) -> str:
        return iso(value)

    def _take(self, value: Any) -> int:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise self.refused(value)
        moment = milliseconds(value)
        if not EARLIEST <= moment <= LATEST:
            raise self.refused(value, "a time within the years 1 to 9999 in UTC")
        return moment


class Choice(Option, frozen=True, kw_only=True):
    """One of a few words."""

    of: type[Enum]

    @property
    def expected(self) -> str:
        return f"one of: {', '.join(self.choices)}"

    @property
    def choices(self) -> list[str]:
        return [each.value for each in self.of]

    def _take(self, value: Any) -> Enum:
        try:
            return self.of(value)
        except ValueError:
            raise self.refused(value) from None


class Words(Option, frozen=True):
    """A few short texts."""

    kind = tuple[str, ...]
    example = "one, two"

    @property
    def expected(self) -> str:
        return f"at most {MAX_TAGS} words of at most {MAX_TEXT} characters"

    @property
    def bounds(self) -> dict[str, Any]:
        return {"max_length": MAX_TAGS}

    def _take(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, tuple | list) or len(value) > MAX_TAGS:
            raise self.refused(value)
        words = tuple(map(_identifier, value))
        for word in words:
            if not isinstance(word, str) or len(word) > MAX_TEXT:
                raise self.refused(value)
            check_text(self.name, word)
        return words


class Document(Option, frozen=True):
    """A mapping, which a job holds as JSON text."""

    kind = dict[str, Any]
    example = '{"order": 7}'

    @property
    def expected(self) -> str:
        return "a mapping"

    def written(self, value: Any) -> Raw:
        return Raw(value)

    def _take(self, value: Any) -> str:
        if not isinstance(value, Mapping):
            raise self.refused(value)
        try:
            text = msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.refused(value, f"something JSON can hold ({error})") from error
        if len(text) > MAX_METADATA:
            most = f"at most {MAX_METADATA:,} bytes of JSON"
            raise self.refused(f"{len(text):,} bytes", most)
        return text.decode()


class Edges(Option, frozen=True):
    """The jobs to wait for, each by its id or as an edge."""

    kind = tuple[str | Edge, ...]
    example = "01JD3Z6K3V9M0Q2T4W6Y8A0C2E"

    @property
    def expected(self) -> str:
        return "a job, its handle, its id or a call made with new"

    @property
    def bounds(self) -> dict[str, Any]:
        return {"max_length": MAX_EDGES}

    def written(self, value: Sequence[Edge]) -> Any:
        return [_edge_document(edge) for edge in value]

    def _take(self, value: Any) -> Any:
        return value


def _edge_document(edge: Edge) -> Any:
    """What a job waits for, as JSON has it; the id of the parent where that says it all."""
    if edge == Edge(parent_id=edge.parent_id):
        return edge.parent_id
    named = msgspec.to_builtins(edge).items()
    return {name: value for name, value in named if value is not None}


def is_number(value: Any) -> bool:
    """Whether a value is a number and neither true nor false."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_text(option: str, value: object) -> str:
    """Refuse what is no text, or one that not every store can hold; the text itself."""
    if isinstance(value, str) and "\0" not in value and _is_unicode(value):
        return value
    raise InvalidOption(option, value, "a text of valid Unicode without NUL characters")


def as_json(option: str, value: Any) -> str:
    """Write a value as JSON text; refuse what JSON or a store cannot hold."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOption(option, "…", "something JSON can hold") from error
    return check_text(option, text)


def check_name(option: str, value: Any) -> None:
    """Refuse a name that a URL, a log line or a shell would stumble over."""
    Name("", option).stored(value)


def check_seconds(option: str, value: Any) -> None:
    """Refuse a duration that is not above 0."""
    Seconds("", option, above_zero=True).stored(value)


def _identifier(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return str(int(value)) if is_whole and abs(value) < _LONGEST_NUMBER else value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
