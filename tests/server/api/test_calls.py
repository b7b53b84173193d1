"""Calls are read by one declaration and described by another."""

import msgspec
import pytest

from penstock.server.api.calls import WholeCall
from penstock.server.api.models import NewJob

OWN = {"id", "payload", "key"}
"""What may differ between jobs that are otherwise alike."""


def test_a_call_is_read_as_it_is_described() -> None:
    assert set(WholeCall.__struct_fields__) == set(NewJob.model_fields)


@pytest.mark.parametrize("name", sorted(set(WholeCall.__struct_fields__) - OWN - {"type"}))
def test_whatever_a_call_says_besides_its_arguments_tells_it_from_others(name: str) -> None:
    plain = WholeCall(type="add")
    value = msgspec.Raw(b"1") if name == "metadata" else 1
    assert msgspec.structs.replace(plain, **{name: value}).options != plain.options


def test_calls_that_differ_in_their_arguments_share_their_options() -> None:
    one = WholeCall(type="add", id="a", payload=msgspec.Raw(b"1"), key="a")
    other = WholeCall(type="add", id="b", payload=msgspec.Raw(b"2"), key="b")
    assert one.options == other.options
