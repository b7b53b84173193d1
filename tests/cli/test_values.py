import pytest

from penstock.cli.output import parse_span
from penstock.cli.root import Refused


@pytest.mark.parametrize(
    ("text", "ms"), [("90", 90_000), ("1.5s", 1_500), ("15m", 900_000), ("1h", 3_600_000)]
)
def test_a_span_is_read(text: str, ms: int) -> None:
    assert parse_span(text, "window") == ms


@pytest.mark.parametrize("text", ["", "x", "5x", "-3s", "1 h 2 m"])
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(Refused, match="such as 90s"):
        parse_span(text, "window")
