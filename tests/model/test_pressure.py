"""The colours of backpressure."""

import pytest

from penstock.model.controls import Pressure, pressure


@pytest.mark.parametrize(
    ("depth", "level"),
    [
        (0, Pressure.GREEN),
        (999, Pressure.GREEN),
        (1_000, Pressure.YELLOW),
        (4_999, Pressure.YELLOW),
        (5_000, Pressure.ORANGE),
        (9_999, Pressure.ORANGE),
        (10_000, Pressure.RED),
        (90_000, Pressure.RED),
    ],
)
def test_the_default_limit_changes_colour_where_alerts_do(depth: int, level: Pressure) -> None:
    assert pressure(depth, 10_000) is level


def test_a_queue_without_a_limit_is_always_green() -> None:
    assert pressure(10**9, 0) is Pressure.GREEN
