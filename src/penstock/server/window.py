"""Windows of time that a request asks about, and the steps in which figures over them are shown."""

import re
from collections import defaultdict

from penstock.server.problems import Refusal
from penstock.store.contract.rollups import (
    DAY_MS,
    HOUR_MS,
    LONGEST_MS,
    MINUTE_MS,
    SHORTEST_MS,
    resolution_for,
)

PATTERN = r"^[0-9]{1,6}(s|m|h|d)$"
UNITS_MS = {"s": 1_000, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
MOST_STEPS = 120

Steps = list[tuple[int, dict[str, float]]]


def window_ms(text: str) -> int:
    """Milliseconds of `90s`, `15m`, `1h` or `7d`."""
    found = re.fullmatch(PATTERN, text)
    wanted = int(text[:-1]) * UNITS_MS[text[-1]] if found else 0
    if not SHORTEST_MS <= wanted <= LONGEST_MS:
        detail = f"The window is {text[:20]!r}, but it must be from 10s to 1000d."
        raise Refusal(422, detail, field="window")
    return wanted


def steps_over(found: Steps, span_ms: int, now: int) -> tuple[int, Steps]:
    """Steps put together to as many as a chart can show, and their width; empty ones included.

    The one that is not over yet is left out, as it would always look like a decline.
    """
    fine = resolution_for(span_ms)
    width = fine * max(1, -(-span_ms // (fine * MOST_STEPS)))
    last = now // width * width
    first = last - max(1, span_ms // width) * width
    steps: dict[int, dict[str, float]] = {
        at: defaultdict(float) for at in range(first, last, width)
    }
    for at, values in found:
        step = steps.get(at // width * width)
        if step is not None:
            for name, value in values.items():
                step[name] += value
    return width, list(steps.items())
