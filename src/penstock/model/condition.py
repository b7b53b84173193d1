"""Conditions on a parent's result: a small, safe part of Python's expressions."""

import ast
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from penstock.model.refused import InvalidCondition

MAX_LENGTH = 500
NAME = "result"

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def check_condition(condition: object) -> str:
    """The condition, or a sentence about what is wrong with it."""
    if not isinstance(condition, str) or not condition.strip():
        raise InvalidCondition(str(condition), "it is empty or not a text")
    _parsed(condition)
    return condition


def holds(condition: str, result: str | None) -> bool:
    """Whether a condition is true of a result (JSON text); what cannot be told is false."""
    try:
        value = msgspec.json.decode(result or "null")
        return bool(_value(_parsed(condition), value))
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, InvalidCondition):
        return False


@lru_cache(maxsize=256)
def _parsed(condition: str) -> ast.expr:
    if len(condition) > MAX_LENGTH:
        raise InvalidCondition(condition, f"it is longer than {MAX_LENGTH} characters")
    try:
        body = ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidCondition(condition, "it is not an expression") from error
    try:
        _check(condition, body)
    except RecursionError as error:
        raise InvalidCondition(condition, "it nests too deep") from error
    return body


def _check(condition: str, node: ast.expr) -> None:
    """Only what `_value` knows may be in it."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return
        case ast.Name(id=name) if name == NAME:
            return
        case ast.Name(id=name):
            raise InvalidCondition(condition, f"it knows no {name!r}, only {NAME!r}")
        case ast.Compare() | ast.BoolOp() | ast.List() | ast.Tuple() | ast.Attribute():
            pass
        case ast.Subscript(slice=index) if not isinstance(index, ast.Slice):
            pass
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            pass
        case ast.Call(func=ast.Name(id="len"), args=[measured], keywords=[]):
            _check(condition, measured)
            return
        case _:
            raise InvalidCondition(condition, f"it may not use {_word(node)}")
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr):
            _check(condition, part)


def _word(node: ast.expr) -> str:
    return ast.unparse(node)[:60]


def _value(node: ast.expr, result: Any) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return result
        case ast.Attribute(value=owner, attr=name):
            return _value(owner, result)[name]
        case ast.Subscript(value=owner, slice=index):
            return _value(owner, result)[_value(index, result)]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(part, result) for part in parts]
        case ast.Call(args=[measured]):
            return len(_value(measured, result))
        case ast.Compare():
            return _compare(node, result)
        case _:
            return _logic(node, result)


def _logic(node: ast.expr, result: Any) -> Any:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _value(part, result)
        case ast.UnaryOp(operand=part):
            return -_value(part, result)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, result) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, result) for part in parts)
        case _:
            raise TypeError(type(node).__name__)


def _compare(node: ast.Compare, result: Any) -> bool:
    left = _value(node.left, result)
    for comparison, part in zip(node.ops, node.comparators, strict=True):
        right = _value(part, result)
        if not _COMPARE[type(comparison)](left, right):
            return False
        left = right
    return True
