"""What a hook uses in the place of `json`, `hmac` and `typing` does the same."""

import hmac
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.apps.recorder.light import NamedTuple, dumps, hmac_sha256, loads
from tests.apps.recorder.payloads import EVENTS, told

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
@pytest.mark.thorough
def test_values_are_written_and_read_as_json_does(value: Any) -> None:
    assert dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert loads(dumps(value)) == json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(("platform", "event"), EVENTS)
def test_payloads_are_read_as_json_does(platform: str, event: str) -> None:
    text = json.dumps(told(platform, event), indent=2)
    assert loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "{} {}", "nul", '"open', "{'a': 1}", "[1,]", "\0"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


def test_what_json_does_not_have_is_left_out() -> None:
    assert loads("[NaN, Infinity, -Infinity, 1e999, 1.5]") == [None, None, None, None, 1.5]
    assert loads('\ufeff {"a": "tab\there"}\n') == {"a": "tab\there"}
    with pytest.raises(ValueError, match="JSON compliant"):
        dumps([float("nan")])


@given(st.binary(max_size=200), st.binary(max_size=300))
def test_hashes_are_those_of_hmac(key: bytes, message: bytes) -> None:
    assert hmac_sha256(key, message) == hmac.digest(key, message, "sha256").hex()


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    names: tuple[str, ...] = ()


def test_a_named_tuple_is_one() -> None:
    point = Point(1)
    assert point == (1, 2, ())
    assert point._replace(y=3).y == 3
    assert (Point.__doc__, Point.__name__, Point.__module__) == ("A place.", "Point", __name__)


def test_without_the_inner_parts_of_json_the_usual_way_is_taken() -> None:
    program = """
import sys
for name in ("_json", "_sha2", "_sha256"):
    sys.modules[name] = None
from penstock.apps.recorder.light import dumps, hmac_sha256, loads
assert loads(dumps({"a": [1.5, "é", None]})) == {"a": [1.5, "é", None]}
assert dumps({"a": (1, "é")}) == '{"a":[1,"é"]}'
assert loads("[NaN]") == [None]
assert len(hmac_sha256(b"k", b"m")) == 64
"""
    subprocess.run([sys.executable, "-c", program], check=True)
