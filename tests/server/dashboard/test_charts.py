import pytest

from penstock.server.dashboard.charts import Chart, Line, round_up, stack


def test_a_chart_draws_gaps_and_hostile_labels_as_text() -> None:
    chart = Chart([0, 1_000, 2_000, 3_000], [Line("<b>", "good", [1, None, 2, 1])])
    assert chart.drawing().count("M") == 2 + 3
    assert "<b>" not in chart.drawing()
    assert str(stack([("queued", 1), ("failed", 0), ('"><b>', 9)], 10)).count("<rect") == 2
    assert "<b>" not in stack([('"><b>', 9)], 10)


def test_the_upper_edge_is_a_round_number() -> None:
    assert [round_up(n) for n in (0, 0.03, 7, 12, 50, 51)] == pytest.approx(
        [1, 0.03, 8, 15, 50, 60]
    )


def test_a_value_between_gaps_is_a_dot() -> None:
    chart = Chart([0, 1_000, 2_000, 3_000], [Line("took", "good", [None, 1, None, 1])])
    assert 'd="M200.0 4.0h0M600.0 4.0h0"' in chart.drawing()
