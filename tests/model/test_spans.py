import pytest

from penstock.model.clock import from_iso
from penstock.model.wording import ago, moment, span

NOW = from_iso("2026-11-15T10:30:15.000Z")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-15T10:02:00Z", "10:02 UTC"),
        ("2026-11-15T10:30:02Z", "10:30:02 UTC"),
        ("2026-11-15T23:59:00Z", "23:59 UTC"),
        ("2026-11-14T10:02:00Z", "2026-11-14 10:02 UTC"),
        ("2027-01-01T00:00:00Z", "2027-01-01 00:00 UTC"),
    ],
)
def test_a_moment_has_its_date_unless_that_is_today(text: str, told: str) -> None:
    assert moment(from_iso(text), NOW) == told


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
