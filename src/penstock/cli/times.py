"""Times and spans as people say them, and spans as people type them."""

import re
from itertools import pairwise

from penstock.cli.root import Refused

UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_TYPED = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def ago(then: int | None, now: int) -> str:
    """A moment as seen from another: `3 min ago`, `in 4 s`, `now`."""
    if then is None:
        return "–"
    distance = now - then
    if abs(distance) < 1_000:
        return "now"
    size = _coarse(abs(distance))
    return f"{size} ago" if distance > 0 else f"in {size}"


def span(ms: float | None) -> str:
    """How long something takes: `850 ms`, `1.2 s`, `3 min 20 s`."""
    if ms is None:
        return "–"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s".replace(".0 s", " s")
    for (unit, size), (smaller, part) in pairwise(UNITS):
        if ms >= size:
            rest = int(ms % size // part)
            return f"{int(ms // size)} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{ms / 1_000:.0f} s"


def parse_span(text: str, option: str) -> int:
    """Milliseconds of `90`, `90s`, `15m`, `1h` or `7d`; a bare number is seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a span such as 90s, 15m or 1h."
        )
    return int(float(found[1]) * _TYPED[found[2] or "s"])


def _coarse(ms: int) -> str:
    for unit, size in UNITS:
        if ms >= size:
            return f"{ms // size} {unit}"
    return "0 s"
