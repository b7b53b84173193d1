import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pydantic
import pytest

from penstock import Penstock, hashed_key
from penstock.app.arguments import deeper_than, depth
from penstock.model.errors import InvalidOption
from tests.support.places import Place


@pytest.mark.parametrize(
    ("text", "levels"),
    [("1", 0), ("[]", 1), ('[{"a": []}]', 3), ('{"a": "[[[["}', 1), ("[[], [], []]", 2)],
)
def test_levels_are_counted_outside_of_texts(text: str, levels: int) -> None:
    assert depth(text) == levels
    assert not deeper_than(text, levels)
    assert levels == 0 or deeper_than(text, levels - 1)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert not deeper_than("[" + ",".join(["{}"] * 1000) + "]", 2)


class Address(pydantic.BaseModel):
    street: str


PARTS = ({"b": 1, "a": [datetime(2026, 1, 2, tzinfo=UTC), UUID(int=7)]}, {"x", "y"}, Path("/a"))


def test_a_hashed_key_is_the_same_for_the_same_values() -> None:
    key = hashed_key("mail", *PARTS, Address(street="Main"))
    same = ({"a": PARTS[0]["a"], "b": 1}, {"y", "x"}, Path("/a"))
    assert hashed_key("mail", *same, Address(street="Main")) == key
    assert key.startswith("mail-")
    assert len(key) == len("mail-") + 32


@pytest.mark.parametrize(
    "other", [("a", "b"), ("a", "bc"), ("ab", "c"), (["a", "bc"],), ("a", "bc", None), (1,), ("1",)]
)
def test_other_values_have_other_keys(other: tuple[object, ...]) -> None:
    others = [("a", "b"), ("a", "bc"), ("ab", "c"), (["a", "bc"],), ("a", "bc", None), (1,), ("1",)]
    assert [hashed_key("k", *each) for each in others].count(hashed_key("k", *other)) == 1


def test_every_process_makes_the_same_key() -> None:
    code = (
        'from penstock import hashed_key; print(hashed_key("k", {"x", "y", "z"}, {"b": 1, "a": 2}))'
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert made == {hashed_key("k", {"z", "y", "x"}, {"a": 2, "b": 1}) + "\n"}


def test_what_no_json_can_hold_makes_no_key() -> None:
    for parts in ((), (object(),), ("\ud83d",)):
        with pytest.raises(InvalidOption, match="parts"):
            hashed_key("k", *parts)


async def test_a_hashed_key_keeps_a_second_job_out(place: Place) -> None:
    async with Penstock(**place.settings) as app:

        @app.job
        async def task() -> None: ...

        first = await task.options(key=hashed_key("task", {"a": 1, "b": 2})).enqueue()
        second = await task.options(key=hashed_key("task", {"b": 2, "a": 1})).enqueue()
        assert (second.id, second.created) == (first.id, False)
