"""Values in a payload are compared as JSON."""

import pytest

from penstock.store.contract.reader import conditions_of, holds


@pytest.mark.parametrize(
    ("payload", "path", "value", "found"),
    [
        ('{"a":{"b":1}}', "a.b", "1", True),
        ('{"a":{"b":1}}', "a.b", "1.0", True),
        ('{"a":{"b":1}}', "a.b", "true", False),
        ('{"a":{"b":1}}', "a.c", "null", False),
        ('{"a":[{"b":1}]}', "a.0.b", "1", True),
        ('{"a":[{"b":1}]}', "a.-1.b", "1", False),
        ('{"a":[1,{"b":[true]}]}', "a", '[1,{"b":[true]}]', True),
        ('{"a":[1,{"b":[true]}]}', "a", '[1,{"b":[1]}]', False),
        ("no JSON", "a", "1", False),
        (b"\xff", "a", "1", False),
    ],
)
def test_a_value_is_found_where_it_is_expected(
    payload: str | bytes, path: str, value: str, found: bool
) -> None:
    assert holds(payload, conditions_of([(path, value)])) is found


def test_nothing_expected_is_always_found() -> None:
    assert holds("no JSON", conditions_of([]))
