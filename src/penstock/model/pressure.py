"""How near a queue is to its limit, in the four colours of backpressure."""

from enum import IntEnum


class Pressure(IntEnum):
    """Green up to a tenth of the limit, then yellow, from one half on orange, and red when full."""

    GREEN = 0
    YELLOW = 1
    ORANGE = 2
    RED = 3


BEGINS_AT = ((1.0, Pressure.RED), (0.5, Pressure.ORANGE), (0.1, Pressure.YELLOW))
"""From which part of the limit on: 1,000, 5,000 and 10,000 jobs under a limit of 10,000."""


def pressure(depth: int, limit: int) -> Pressure:
    """The colour of a queue with so many jobs waiting; one without a limit (0) is always green."""
    if limit <= 0:
        return Pressure.GREEN
    return next((level for part, level in BEGINS_AT if depth >= part * limit), Pressure.GREEN)
