import pytest

from penstock.cli.root import Refused
from penstock.cli.times import ago, parse_span, span


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (0, "now"),
        (999, "now"),
        (3_000, "3 s ago"),
        (300_000, "5 min ago"),
        (7_200_000, "2 h ago"),
        (3 * 86_400_000, "3 d ago"),
        (-4_000, "in 4 s"),
    ],
)
def test_a_moment_is_told_from_now(distance: int, words: str) -> None:
    assert ago(10**12 - distance, 10**12) == words


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (None, "–"),
        (850, "850 ms"),
        (1_234, "1.2 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(ms: int | None, words: str) -> None:
    assert span(ms) == words


@pytest.mark.parametrize(
    ("text", "ms"), [("90", 90_000), ("1.5s", 1_500), ("15m", 900_000), ("1h", 3_600_000)]
)
def test_a_span_is_read(text: str, ms: int) -> None:
    assert parse_span(text, "window") == ms


@pytest.mark.parametrize("text", ["", "x", "5x", "-3s", "1 h 2 m"])
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(Refused, match="such as 90s"):
        parse_span(text, "window")
