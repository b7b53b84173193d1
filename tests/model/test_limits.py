import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.controls import (
    Leased,
    Limit,
    LimitKind,
    LimitScope,
    Starts,
    check_limits,
    frees_in,
    leased_under,
    limits_on,
    parse_rate,
    rate_state,
    room,
    started,
)
from penstock.model.errors import InvalidOption


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


def a_limit(scope: LimitScope, name: str, kind: LimitKind, capacity: int) -> Limit:
    return Limit(scope=scope, name=name, kind=kind, capacity=capacity)


def test_a_limit_with_the_very_name_goes_before_one_for_each() -> None:
    each = a_limit(LimitScope.TENANT, "*", LimitKind.CONCURRENCY, 1)
    own = a_limit(LimitScope.TENANT, "acme", LimitKind.CONCURRENCY, 2)
    for order in ([each, own], [own, each]):
        assert limits_on(order, "main", "acme", "work", None) == [own]


def test_a_limit_for_each_is_named_after_what_it_is_about() -> None:
    each = a_limit(LimitScope.TENANT, "*", LimitKind.CONCURRENCY, 1)
    [found] = limits_on([each], "main", "acme", "work", None)
    assert (found.name, found.capacity) == ("acme", 1)
    assert limits_on([each], "main", "", "work", None) == []


def test_limits_of_two_kinds_hold_at_once_but_a_depth_holds_nobody_back() -> None:
    limits = [a_limit(LimitScope.QUEUE, "main", kind, 3) for kind in LimitKind]
    kinds = {limit.kind for limit in limits_on(limits, "main", "", "work", None)}
    assert kinds == {LimitKind.CONCURRENCY, LimitKind.RATE}


def test_leases_are_summed_up_by_all_that_a_limit_may_be_about() -> None:
    rows = [("a:1", "main", "acme", "work", "", 3, 1), ("a:1", "main", "", "play", "k", 2, 2)]
    found = leased_under(rows)
    assert found[LimitScope.QUEUE, "main"] == {"a:1": Leased(5, 3)}
    assert found[LimitScope.TENANT, "acme"] == {"a:1": Leased(3, 1)}
    assert found[LimitScope.KEY, "k"] == {"a:1": Leased(2, 2)}
    assert (LimitScope.KEY, "") not in found


def test_leases_take_up_what_has_started_or_the_slots_that_they_fill() -> None:
    assert Leased(leases=5, started=1).taken(slots=3) == 3
    assert Leased(leases=2, started=1).taken(slots=3) == 2
    assert Leased(leases=5, started=4).taken(slots=3) == 4


def test_a_rate_tells_how_much_of_it_is_taken_and_when_it_lets_one_more_start() -> None:
    state = rate_state(a_rate(2, 1_000), [(100, 2)], 300)
    assert (state.used, state.frees_in_ms) == (2, 800)
