"""How figures are summed up, whichever store keeps them."""

from collections import defaultdict

import pytest

from penstock.store.contract.metrics import (
    DAY_MS,
    FINE_MS,
    HOUR_MS,
    MINUTE_MS,
    attempts_name,
    gauges_of,
    queue_depths,
    resolution_for,
    step_at,
    windows,
)


@pytest.mark.parametrize(
    ("span_ms", "resolution_ms"),
    [
        (1, FINE_MS),
        (HOUR_MS, FINE_MS),
        (HOUR_MS + 1, MINUTE_MS),
        (2 * DAY_MS, MINUTE_MS),
        (60 * DAY_MS, HOUR_MS),
        (1_000 * DAY_MS, DAY_MS),
        (9_999 * DAY_MS, DAY_MS),
    ],
)
def test_a_span_is_read_from_the_finest_steps_that_reach_back_so_far(
    span_ms: int, resolution_ms: int
) -> None:
    assert resolution_for(span_ms) == resolution_ms


def test_a_step_is_named_by_its_beginning() -> None:
    assert step_at(59_999, FINE_MS) == 50_000
    assert step_at(60_000, FINE_MS) == 60_000


def test_without_figures_there_is_one_row_of_nothing() -> None:
    [in_all] = windows([], HOUR_MS)
    assert (in_all.type, in_all.queue, in_all.span_ms, in_all.completed) == ("", "", HOUR_MS, 0)
    assert in_all.success_rate is None
    assert in_all.duration_p50_ms is None


def test_the_row_in_all_comes_first_and_sums_up_the_others() -> None:
    figures = [
        ("mail", "slow", "completed", 3.0),
        ("mail", "slow", "failed", 1.0),
        ("mail", "slow", "dead", 1.0),
        ("grow", "fast", "completed", 2.0),
        ("grow", "fast", "completed", 4.0),
    ]
    in_all, grow, mail = windows(figures, MINUTE_MS)
    assert (in_all.type, in_all.completed, in_all.failed) == ("", 9, 1)
    assert (grow.type, grow.queue, grow.completed, grow.per_minute) == ("grow", "fast", 6, 6.0)
    assert (mail.type, mail.queue, mail.success_rate) == ("mail", "slow", 0.75)


def test_pending_jobs_of_a_queue_include_those_that_wait_for_others() -> None:
    places = defaultdict(int, {"pending": 2, "blocked": 3, "queued": 5})
    [depth] = queue_depths({"slow": places}, {"slow": 1_500})
    assert (depth.pending, depth.blocked, depth.queued, depth.paused) == (5, 3, 5, 0)
    assert gauges_of(depth) == {
        "gauge:depth": 5,
        "gauge:pending": 5,
        "gauge:in_progress": 0,
        "gauge:oldest_ms": 1_500,
    }


def test_attempts_are_told_apart_up_to_ten() -> None:
    names = ["attempts:0", "attempts:1", "attempts:10", "attempts:more", "attempts:more"]
    assert [attempts_name(attempts) for attempts in (0, 1, 10, 11, 500)] == names
