"""From the steps in which a store counts durations to the fixed buckets of Prometheus.

A step that a bucket's bound divides is split there, as if its durations lay evenly in it, which
is what Prometheus assumes within a bucket too. Steps grow by a fifth: a count at a bound is wrong
by a part of one step at most, and it only ever grows.
"""

from collections.abc import Mapping, Sequence
from math import floor

from penstock.model.histogram import GROWTH

SECONDS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
ATTEMPTS = (1.0, 2.0, 3.0, 5.0, 10.0)
MORE_ATTEMPTS = 11
"""What stands for more attempts than are told apart."""

Buckets = list[tuple[str, float]]


def duration_buckets(steps: Mapping[int, float]) -> Buckets:
    """How many durations lie at or below each bound."""
    found = [(str(bound), float(floor(_below(steps, bound * 1_000) + 1e-6))) for bound in SECONDS]
    return [*found, ("+Inf", float(sum(steps.values())))]


def attempt_buckets(counts: Mapping[int, float]) -> Buckets:
    """How many jobs had ended after so many attempts or fewer."""
    found = [
        (str(bound), float(sum(count for number, count in counts.items() if number <= bound)))
        for bound in ATTEMPTS
    ]
    return [*found, ("+Inf", float(sum(counts.values())))]


def attempt_number(name: str) -> int:
    """The attempts of a counter named `attempts:3` or `attempts:more`."""
    told = name.partition(":")[2]
    return int(told) if told.isdigit() else MORE_ATTEMPTS


def merged(parts: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Several counts as one."""
    sums: dict[int, float] = {}
    for part in parts:
        for step, count in part.items():
            sums[step] = sums.get(step, 0.0) + count
    return sums


def _below(steps: Mapping[int, float], bound_ms: float) -> float:
    return sum(count * _share(step, bound_ms) for step, count in steps.items())


def _share(step: int, bound_ms: float) -> float:
    low, high = (0.0, 1.0) if step == 0 else (GROWTH ** (step - 1), GROWTH**step)
    return min(1.0, max(0.0, (bound_ms - low) / (high - low)))
