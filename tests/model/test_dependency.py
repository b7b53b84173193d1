import pytest

from penstock.model.dependency import check_condition, find_cycle, holds, with_inputs
from penstock.model.errors import InvalidCondition


def test_inputs_are_put_into_a_payload_as_they_are() -> None:
    assert with_inputs("{}", [("a", None, "1.10")]) == '{"a":1.10}'
    assert with_inputs('{"b":2}', [("a", None, None)]) == '{"b":2,"a":null}'
    listed = [("xs", 1, '"b"'), ("xs", 0, '"a"'), ("y", None, "[]")]
    assert with_inputs("{}", listed) == '{"y":[],"xs":["a","b"]}'
    assert with_inputs(' {"b" : 2} ', []) == ' {"b" : 2} '


def test_an_input_replaces_what_was_put_in_before() -> None:
    before = with_inputs('{"b":1.50,"é\\"":1e400}', [("a", None, None)])
    assert with_inputs(before, [("a", None, "7")]) == '{"b":1.50,"é\\"":1e400,"a":7}'
    assert with_inputs('{"a":null}', [("a", None, "7")]) == '{"a":7}'


@pytest.mark.parametrize("payload", ["", "not json", "[]", '{"a":', "{" * 5_000])
def test_a_payload_that_is_no_json_raises_nothing(payload: str) -> None:
    assert isinstance(with_inputs(payload, [("a", None, "1")]), str)


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        ({}, None),
        ({"a": ["b"], "b": ["c"]}, None),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"]}, None),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]}, ["a", "b", "c", "a"]),
    ],
)
def test_a_cycle_is_found_and_begins_where_it_ends(
    parents: dict[str, list[str]], cycle: list[str] | None
) -> None:
    assert find_cycle(parents) == cycle


def test_a_long_line_is_no_cycle_and_no_recursion() -> None:
    line = {str(n): [str(n + 1)] for n in range(50_000)}
    assert find_cycle(line) is None
    assert len(find_cycle(line | {"50000": ["0"]}) or ()) == 50_002


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os')",
        "result.keys()",
        "(lambda: 1)()",
        "[x for x in result]",
        "result if result else 1",
        "f'{result}'",
        "9**9**9",
        "'x' * 1000000000",
        "result[1:2]",
        "len(result, result)",
        "len",
        "x := 1",
        "result = 1",
        "result; result",
        "b'x' == result",
        "result\x00",
        "(" * 400,
        "result == " + "1" * 600,
        "*result",
    ],
)
def test_a_condition_uses_nothing_that_runs(condition: str) -> None:
    with pytest.raises(InvalidCondition) as refused:
        check_condition(condition)
    assert str(refused.value).endswith("such as result['total'] > 100.")


def test_a_condition_reaches_no_attribute_of_python() -> None:
    assert holds("result.__class__ == 1", '{"__class__":1}')
    assert not holds("result.__class__", '"text"')


@pytest.mark.parametrize("condition", ["-" * 490 + "result", "not " * 120 + "result"])
def test_a_condition_may_nest_as_deep_as_it_is_long(condition: str) -> None:
    assert holds(check_condition(condition), "1") in (True, False)
