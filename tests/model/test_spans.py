import pytest

from penstock.model.clock import from_iso
from penstock.model.spans import moment

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
