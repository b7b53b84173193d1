"""How pages and commands say things."""

import pytest

from penstock.apps.recorder.wording import platform, snippet
from penstock.model.wording import money, short


@pytest.mark.parametrize(
    ("dollars", "words"),
    [
        (None, "–"),
        (0, "$0"),
        (0.0004, "< $0.001"),
        (0.042, "$0.042"),
        (0.5, "$0.50"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_is_said_as_exactly_as_it_matters(dollars: float | None, words: str) -> None:
    assert money(dollars) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (912, "912"),
        (1_200, "1.2 k"),
        (450_000, "450 k"),
        (2_400_000, "2.4 M"),
        (3 * 10**9, "3.0 G"),
    ],
)
def test_large_numbers_are_short(number: int, words: str) -> None:
    assert short(number) == words


def test_what_was_found_is_marked() -> None:
    assert snippet("…the ‹retry› ‹budget› was") == [
        ("…the ", False),
        ("retry", True),
        (" ", False),
        ("budget", True),
        (" was", False),
    ]
    assert snippet("a ‹ b") == [("a ", False), (" b", False)]
    assert snippet("") == []


def test_an_assistant_that_nobody_knows_keeps_its_name() -> None:
    assert (platform("gemini_cli"), platform("other"), platform("")) == (
        "Gemini CLI",
        "other",
        "unknown",
    )
