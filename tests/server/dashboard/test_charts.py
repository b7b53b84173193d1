import re

import pytest

from penstock.operate.stats import Point, Rate, rate_of
from penstock.server.dashboard.charts import (
    Chart,
    Line,
    round_up,
    stack,
    throughput,
)


def test_a_chart_draws_gaps_and_hostile_labels_as_text() -> None:
    chart = Chart([0, 1_000, 2_000, 3_000], [Line("<b>", "good", [1, None, 2, 1])])
    assert chart.drawing().count("M") == 2 + 1 + 3
    assert "<b>" not in chart.drawing()
    assert str(stack([("queued", 1), ("failed", 0), ('"><b>', 9)], 10)).count("<rect") == 2
    assert "<b>" not in stack([('"><b>', 9)], 10)


def test_the_upper_edge_is_a_round_number() -> None:
    assert [round_up(n) for n in (0, 0.03, 7, 12, 50, 51)] == pytest.approx(
        [1, 0.03, 8, 15, 50, 60]
    )


def test_a_value_between_gaps_or_zeros_is_a_dot() -> None:
    values: list[float | None] = [None, 1, None, 0, 1, 0, 1, 1]
    chart = Chart([n * 1_000 for n in range(8)], [Line("duration", "good", values)])
    [dots] = re.findall(r'<path class="dot in-good" d="([^"]*)"/>', chart.drawing())
    assert dots == "M85.7 4.0h0M342.9 4.0h0"


def test_a_value_that_is_small_beside_others_is_seen_above_the_edge() -> None:
    lines = [Line("completed", "good", [400, 400]), Line("failed", "warn", [1, 0])]
    _, failed = re.findall(
        r'<path class="line in-\w+" d="([^"]*)"/>', Chart([0, 1], lines).drawing()
    )
    assert failed == "M0.0 155.3L600.0 160.0"


def test_a_chart_without_lone_values_has_no_dots() -> None:
    assert "dot" not in Chart([0, 1, 2], [Line("duration", "good", [1, 2, 1])]).drawing()


def test_what_hardly_ever_happens_is_drawn_only_where_it_did() -> None:
    points = points_of(failed=(0, 0, 0, 2, 0, 0))
    [completed, failed, _] = throughput(10_000, points).lines
    assert completed.values == [60] * 6
    assert failed.values == [None, None, 0, 12, 0, None]


def test_the_figures_tell_what_the_chart_shows_since_the_first_job() -> None:
    rate = rate_of(10_000, points_of(completed=(0, 0, 0, 5, 10, 15)))
    assert rate == Rate(mean=60, peak=90)
    assert rate_of(10_000, points_of(completed=(0, 0))) is None


def points_of(**counts: tuple[int, ...]) -> list[Point]:
    """Steps in which so much happened; ten jobs completed in each if nothing else is said."""
    size = len(next(iter(counts.values())))
    chosen = {"completed": (10,) * size} | counts
    timings = {name: None for name in Point.__struct_fields__ if name.endswith("_ms")}
    none = dict.fromkeys(set(Point.__struct_fields__) - {"at", *timings}, 0)
    return [
        Point(at=n * 10_000, **none | {name: row[n] for name, row in chosen.items()}, **timings)
        for n in range(size)
    ]
