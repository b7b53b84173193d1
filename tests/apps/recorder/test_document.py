"""What is published is the same bytes everywhere, under the address that everybody computes."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.apps.recorder.publish.document import canonical, cid_of, document_of
from penstock.apps.recorder.records import Learning
from penstock.model.errors import InvalidOption


def a_learning(content: str = "So it is.") -> Learning:
    return Learning(
        id="l1",
        tenant_id="acme",
        conversation_id="c1",
        source_message_ids=["m1"],
        category="pattern",
        title="Title",
        content=content,
        confidence=0.75,
        tags=["b", "a"],
        status="approved",
        source="offline",
        created_at=1_800_000_000_000,
    )


def test_the_address_is_that_of_kubo() -> None:
    known = "bafkreide5semuafsnds3ugrvm6fbwuyw2ijpj43gwjdxemstjkfozi37hq"
    assert cid_of(b"Hello world") == known


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (0.000001, "0.000001"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (333333333.33333329, "333333333.3333333"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (-1.5, "-1.5"),
    ],
)
def test_numbers_are_written_as_rfc_8785_says(number: float, written: str) -> None:
    assert canonical(number) == written.encode()


def test_names_are_in_the_order_of_utf_16() -> None:
    names = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\xf6": 7}
    told = json.loads(canonical(names), object_pairs_hook=list)
    assert [value for _, value in told] == [2, 4, 6, 7, 1, 5, 3]


def test_texts_are_escaped_no_more_than_they_must_be() -> None:
    text = '\u20ac$\u000f\u000aA\'B"\\\\"/'
    assert canonical(text) == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()


@settings(max_examples=40)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.text()
        | st.floats(-1e15, 1e15),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_whatever_is_written_reads_back_as_the_same(value: object) -> None:
    try:
        written = canonical(value)
    except UnicodeEncodeError:
        return
    assert json.loads(written) == value
    assert canonical(json.loads(written)) == written


@pytest.mark.parametrize("number", [math.nan, math.inf, 2**53])
def test_numbers_that_not_every_reader_has_are_refused(number: float) -> None:
    with pytest.raises(InvalidOption):
        canonical(number)


def test_a_document_says_nothing_of_where_it_was_learned() -> None:
    told = json.loads(document_of(a_learning(), "CC-BY-4.0"))
    assert told == {
        "version": 1,
        "category": "pattern",
        "title": "Title",
        "content": "So it is.",
        "tags": ["a", "b"],
        "confidence": 0.75,
        "created_at": "2027-01-15T08:00:00.000Z",
        "license": "CC-BY-4.0",
    }


def test_a_document_of_more_than_one_chunk_is_refused() -> None:
    with pytest.raises(InvalidOption, match="262,144"):
        document_of(a_learning("x" * 300_000), "CC-BY-4.0")
