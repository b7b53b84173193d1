import pytest

from penstock.client.codec import deeper_than, depth


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
