"""Edges between jobs: what a job waits for, and what becomes of it when that goes wrong."""

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode, encode

from penstock.model.errors import InvalidCondition
from penstock.model.states import Status

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


class EdgeKind(StrEnum):
    """What a child needs of its parent."""

    COMPLETION = "completion"
    SUCCESS = "success"
    DATA = "data"
    CONDITIONAL = "conditional"
    ORDER = "order"


class OnFailure(StrEnum):
    """What becomes of a child whose parent died or was cancelled."""

    CANCEL = "cancel"
    DEAD_LETTER = "dead_letter"
    RUN = "run"


class OnRequeue(StrEnum):
    """What becomes of a child that ended because of its parent, when that parent is requeued."""

    RESTORE = "restore"
    LEAVE = "leave"


class Edge(Struct, frozen=True, kw_only=True):
    """One thing a job waits for.

    A `data` edge puts the parent's result into the child's `argument`; several with one argument
    and a `position` each make a list. An `order` edge only keeps jobs of one order key in line.
    """

    parent_id: str
    kind: EdgeKind = EdgeKind.SUCCESS
    condition: str | None = None
    argument: str | None = None
    position: int | None = None
    on_failure: OnFailure = OnFailure.CANCEL
    on_requeue: OnRequeue = OnRequeue.RESTORE


class Outcome(StrEnum):
    """How an edge was closed."""

    SATISFIED = "satisfied"
    CANCELLED = "cancelled"
    DEAD = "dead"
    NOT_MET = "not_met"


def decide(edge: Edge, status: Status, result: str | None) -> Outcome:
    """How an edge closes when its parent has ended."""
    if edge.kind in (EdgeKind.COMPLETION, EdgeKind.ORDER):
        return Outcome.SATISFIED
    if status is not Status.COMPLETED:
        return _FAILED[edge.on_failure]
    if edge.kind is EdgeKind.CONDITIONAL and not holds(edge.condition or "", result):
        return Outcome.NOT_MET
    return Outcome.SATISFIED


_FAILED = {
    OnFailure.CANCEL: Outcome.CANCELLED,
    OnFailure.DEAD_LETTER: Outcome.DEAD,
    OnFailure.RUN: Outcome.SATISFIED,
}


def find_cycle(parents: Mapping[str, Iterable[str]]) -> list[str] | None:
    """A path that comes back to its beginning, if there is one: `["a", "b", "a"]`."""
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        on_path: set[str] = set()
        walk = [iter((start,))]
        while walk:
            job_id = next(walk[-1], None)
            if job_id is None:
                walk.pop()
                if path:
                    on_path.discard(path[-1])
                    done.add(path.pop())
                continue
            if job_id in on_path:
                return [*path[path.index(job_id) :], job_id]
            if job_id not in done:
                path.append(job_id)
                on_path.add(job_id)
                walk.append(iter(parents.get(job_id, ())))
    return None


def with_inputs(payload: str, inputs: Sequence[tuple[str, int | None, str | None]]) -> str:
    """A payload with its parents' results: (argument, position, JSON text) each.

    The texts are put together as they are, so that no number is read and written anew. What an
    earlier call put in, before a parent was requeued, is replaced.
    """
    single: dict[str, str] = {}
    listed: dict[str, list[tuple[int, str]]] = {}
    for argument, position, result in inputs:
        if position is None:
            single[argument] = result or "null"
        else:
            listed.setdefault(argument, []).append((position, result or "null"))
    for argument, results in listed.items():
        single[argument] = f"[{','.join(text for _, text in sorted(results))}]"
    if not single:
        return payload
    added = ",".join(f"{encode(name).decode()}:{text}" for name, text in single.items())
    body = _without(payload, single).rstrip()[:-1].rstrip()
    return f"{body}{'' if body.endswith('{') else ','}{added}}}"


def _without(payload: str, names: Collection[str]) -> str:
    try:
        given = decode(payload, type=dict[str, Raw])
    except (DecodeError, RecursionError):
        return payload  # it was spoilt by hand; the child's own worker will say so
    if given.keys().isdisjoint(names):
        return payload
    kept = [
        f"{encode(name).decode()}:{bytes(value).decode()}"
        for name, value in given.items()
        if name not in names
    ]
    return f"{{{','.join(kept)}}}"
