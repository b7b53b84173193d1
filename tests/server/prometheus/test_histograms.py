"""Folding the store's steps into fixed buckets."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.histogram import step_of
from penstock.server.prometheus.families import (
    SECONDS,
    attempt_buckets,
    attempt_number,
    duration_buckets,
)

DURATIONS = st.lists(st.integers(0, 1_000_000), max_size=60)


def steps_of(durations: list[int]) -> dict[int, float]:
    steps: dict[int, float] = {}
    for duration in durations:
        steps[step_of(duration)] = steps.get(step_of(duration), 0) + 1
    return steps


@given(DURATIONS)
def test_a_bucket_is_off_by_no_more_than_the_step_that_its_bound_divides(
    durations: list[int],
) -> None:
    steps = steps_of(durations)
    found = dict(duration_buckets(steps))
    for bound in SECONDS:
        surely = sum(step_of(each) < step_of(bound * 1_000) for each in durations)
        divided = steps.get(step_of(bound * 1_000), 0)
        assert surely <= found[str(bound)] <= surely + divided
    assert found["+Inf"] == len(durations)


@given(DURATIONS, st.integers(0, 1_000_000))
def test_buckets_only_grow_upwards_and_with_time(durations: list[int], one_more: int) -> None:
    before = [count for _, count in duration_buckets(steps_of(durations))]
    after = [count for _, count in duration_buckets(steps_of([*durations, one_more]))]
    assert before == sorted(before)
    assert all(new >= old for new, old in zip(after, before, strict=True))
    assert all(count == int(count) for count in after)


def test_a_step_is_split_where_the_bound_divides_it() -> None:
    step = step_of(100)
    assert 1.2 ** (step - 1) < 100 < 1.2**step
    share = (100 - 1.2 ** (step - 1)) / (1.2**step - 1.2 ** (step - 1))
    assert duration_buckets({step: 1_000})[0] == ("0.1", float(int(share * 1_000)))


def test_attempts_are_counted_as_they_are() -> None:
    numbers = {attempt_number(f"attempts:{n}"): 1.0 for n in (0, 1, 2, 4, 10, "more")}
    assert attempt_buckets(numbers) == [
        ("1.0", 2),
        ("2.0", 3),
        ("3.0", 3),
        ("5.0", 4),
        ("10.0", 5),
        ("+Inf", 6),
    ]
