"""A breaker's position follows the clock, wherever that goes."""

import pytest

from penstock.model.controls import Breaker, BreakerPosition, BreakerState

COOL_DOWN_MS = 30_000
HOUR_MS = 3_600_000
OPENED = BreakerState(
    breaker=Breaker(name="bank", types=("pay",), cool_down_ms=COOL_DOWN_MS), opened_at=HOUR_MS
)


@pytest.mark.parametrize(
    ("now", "position"),
    [
        (HOUR_MS, BreakerPosition.OPEN),
        (HOUR_MS + COOL_DOWN_MS - 1, BreakerPosition.OPEN),
        (HOUR_MS + COOL_DOWN_MS, BreakerPosition.HALF_OPEN),
    ],
)
def test_it_tries_once_it_has_cooled_down(now: int, position: BreakerPosition) -> None:
    assert OPENED.position(now) is position


def test_a_clock_put_back_by_an_hour_does_not_keep_it_open_for_an_hour() -> None:
    assert OPENED.position(0) is BreakerPosition.HALF_OPEN
    assert OPENED.tries_in_ms(0) is None


def test_a_clock_put_back_a_little_keeps_it_open_a_little_longer() -> None:
    assert OPENED.position(HOUR_MS - 1_000) is BreakerPosition.OPEN
    assert OPENED.tries_in_ms(HOUR_MS - 1_000) == COOL_DOWN_MS + 1_000
