"""Times and spans as people type them."""

import re
from typing import TYPE_CHECKING

from penstock.cli.root import Refused

if TYPE_CHECKING:
    from datetime import datetime

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_TYPED = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_span(text: str, option: str) -> int:
    """Milliseconds of `90`, `90s`, `15m`, `1h` or `7d`; a bare number is seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a span such as 90s, 15m or 1h."
        )
    return int(float(found[1]) * _TYPED[found[2] or "s"])


def parse_time(text: str | None, option: str, zone: str) -> "datetime | None":
    """An ISO-8601 time; one without an offset is in the zone."""
    if text is None:
        return None
    from datetime import datetime

    from penstock.model.zone import find_zone

    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a time such as 2026-11-15T03:28."
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=find_zone(zone))


def moment(text: str | None, option: str) -> int | None:
    """The same in milliseconds, as stores keep it; without an offset it is UTC."""
    from penstock.model.clock import milliseconds

    found = parse_time(text, option, "UTC")
    return None if found is None else milliseconds(found)
