from datetime import timedelta
from types import SimpleNamespace

import pytest

from penstock.model.clock import from_iso
from penstock.model.retry import retry_after_ms

NOW = from_iso("2026-11-15T03:28:00Z")


class Limited(Exception):
    """An error of some HTTP client that was told to wait."""

    def __init__(self, **attributes: object) -> None:
        super().__init__("limited")
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (30, 30_000),
        (0.0001, 1),
        ("30", 30_000),
        (timedelta(minutes=1), 60_000),
        ("Sun, 15 Nov 2026 03:28:30 GMT", 30_000),
        ("Sun, 15 Nov 2026 03:27:00 GMT", 0),
        (-5, 0),
        ("soon", None),
        ("", None),
        ("nan", None),
        (float("inf"), None),
        (True, None),
        (None, None),
        (object(), None),
    ],
)
def test_seconds_durations_and_http_dates_are_understood(
    value: object, expected: int | None
) -> None:
    assert retry_after_ms(Limited(retry_after=value), NOW) == expected


@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
def test_the_header_is_found_on_the_response_or_on_the_exception(name: str) -> None:
    headers = {name: "7"}
    assert retry_after_ms(Limited(response=SimpleNamespace(headers=headers)), NOW) == 7_000
    assert retry_after_ms(Limited(headers=headers), NOW) == 7_000


def test_the_exception_it_was_raised_from_is_asked_too() -> None:
    outer = RuntimeError()
    outer.__cause__ = Limited(retry_after=3)
    assert retry_after_ms(outer, NOW) == 3_000


def test_a_group_waits_for_its_slowest_member() -> None:
    group = ExceptionGroup("two", [Limited(retry_after=3), Limited(retry_after=9)])
    assert retry_after_ms(group, NOW) == 9_000


def test_strange_headers_are_no_answer() -> None:
    class Strange:
        def get(self, _: str) -> str:
            raise RuntimeError

    assert retry_after_ms(Limited(headers=Strange()), NOW) is None
    assert retry_after_ms(Limited(headers=["Retry-After"]), NOW) is None
    assert retry_after_ms(ValueError(), NOW) is None
