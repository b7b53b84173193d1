"""Durations counted in steps that grow by a fifth: percentiles within 10 %, without samples."""

from collections.abc import Mapping
from math import log

GROWTH = 1.2
_SCALE = 1 / log(GROWTH)


def step_of(duration_ms: float) -> int:
    """The step a duration falls into; 0 holds everything below a millisecond."""
    return 0 if duration_ms < 1 else 1 + int(log(duration_ms) * _SCALE)


def middle_of(step: int) -> float:
    """A duration that stands for the step."""
    return 0.5 if step == 0 else GROWTH ** (step - 0.5)


def steps_of(counters: Mapping[str, float], name: str) -> dict[int, float]:
    """What was counted in each step, out of counters named `duration:3` or `wait:3`."""
    prefix = f"{name}:"
    return {
        int(each.removeprefix(prefix)): count
        for each, count in counters.items()
        if each.startswith(prefix)
    }


def percentile(counts: Mapping[int, float], fraction: float) -> float | None:
    """The duration below which that fraction of all counted ones lie."""
    total = sum(counts.values())
    if total == 0:
        return None
    seen = 0.0
    for step in sorted(counts):
        seen += counts[step]
        if seen >= fraction * total:
            return round(middle_of(step), 1)
    return None
