import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import InvalidOption
from penstock.model.limits import (
    Limit,
    LimitKind,
    LimitScope,
    Starts,
    check_limits,
    frees_in,
    parse_rate,
    room,
    started,
)


def a_rate(capacity: int, interval_ms: int) -> Limit:
    return Limit(
        scope=LimitScope.TYPE,
        name="work",
        kind=LimitKind.RATE,
        capacity=capacity,
        interval_ms=interval_ms,
    )


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("10/s", (10, 1_000)),
        (" 10 / sec ", (10, 1_000)),
        ("100/min", (100, 60_000)),
        ("100/M", (100, 60_000)),
        ("5/30s", (5, 30_000)),
        ("1000/day", (1_000, 86_400_000)),
        ("3/2 hours", (3, 7_200_000)),
    ],
)
def test_a_rate_is_a_number_per_time(text: str, meaning: tuple[int, int]) -> None:
    assert parse_rate(text) == meaning


@pytest.mark.parametrize(
    "text", ["", "10", "/s", "10/", "0/s", "10/0s", "-1/s", "1.5/s", "10/year", "10/s/s", 10, None]
)
def test_anything_else_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(InvalidOption, match="such as '10/s'"):
        parse_rate(text)


@given(
    capacity=st.integers(1, 20),
    interval_ms=st.integers(1, 100_000),
    steps=st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 5)), max_size=60),
)
def test_no_window_holds_too_many_and_the_record_stays_short(
    capacity: int, interval_ms: int, steps: list[tuple[int, int]]
) -> None:
    limit, now, record = a_rate(capacity, interval_ms), 0, Starts()
    happened: list[int] = []
    for passed, wanted in steps:
        now += passed
        count = min(wanted, room(record, limit, now))
        if count:
            record = started(record, limit, now, count)
            happened += [now] * count
        wait = frees_in(record, limit, now)
        assert (wait is None) == (room(record, limit, now) > 0)
        if wait is not None:
            assert room(record, limit, now + wait) > 0
    for first, later in zip(happened, happened[capacity:], strict=False):
        assert later - first >= interval_ms
    assert len(record) <= 66


def test_starts_far_ahead_come_from_a_clock_that_was_put_back() -> None:
    limit = a_rate(1, 1_000)
    assert room([(5_000_000, 1)], limit, now=1_000) == 1
    assert room([(1_500, 1)], limit, now=1_000) == 0


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True, "3", None, 10**30])
def test_a_limit_that_would_stop_everything_is_refused(capacity: object) -> None:
    limit = Limit(
        scope=LimitScope.KEY,
        name="k",
        kind=LimitKind.CONCURRENCY,
        capacity=capacity,  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidOption, match="pause it to stop it"):
        check_limits([limit])
