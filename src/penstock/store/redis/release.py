"""Edges on their way to the scripts, and what the scripts leave to Python: conditions, refusals."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.json import decode, encode

from penstock.model.dependency import Edge, EdgeKind, Outcome, decide
from penstock.model.errors import (
    DependencyCycle,
    IllegalTransition,
    KeyTaken,
    ParentNotFound,
    PenstockError,
)
from penstock.model.failure import orphaned
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.redis.keys import spelled
from penstock.store.redis.scripts import Scripts

Decisions = dict[str, dict[str, tuple[str, str, str]]]
"""By parent and condition: how the edge closes, and the child's error and its details."""

SWEPT_AT_ONCE = 500
"""How many parents one call of the sweep looks at."""


async def decided(scripts: Scripts, name: str, *arguments: Any) -> Any:
    """The answer of a script that may ask for conditions to be looked at, or refuse.

    Such a script has written nothing: it is called again with all that was decided so far.
    """
    decisions: Decisions = {}
    answer = await scripts.call(name, *arguments)
    while _is(answer, b"decide"):
        _decide(decisions, answer[1:])
        answer = await scripts.call(name, *arguments, decisions=encode(decisions).decode())
    if _is(answer, b"refused"):
        raise refusal(*(part.decode() for part in answer[1:]))
    return answer


async def sweep(scripts: Scripts, limit: int) -> int:
    """Close edges whose parent has ended or is gone; there should never be one."""
    found, place = 0, b"0"
    while found < limit:
        place, count = await decided(scripts, "sweep", place, SWEPT_AT_ONCE)
        found += count
        if place == b"0":
            break
    return found


def refusal(error: str, *about: str) -> PenstockError:
    """The error that a script names, with what it says about it."""
    return _REFUSALS[error](*about)


def edges_as_rows(edges: Sequence[Edge]) -> list[tuple[str, str, str, str]]:
    """Edges as `linking.lua` takes them, each once: parent, kind, argument and terms."""
    rows = {(edge.parent_id, edge.kind.value, edge.argument or ""): _terms(edge) for edge in edges}
    return [(*identity, terms) for identity, terms in rows.items()]


def _terms(edge: Edge) -> str:
    terms = (edge.on_failure, edge.on_requeue, edge.position, edge.condition)
    return encode(terms).decode()


def _is(answer: Any, word: bytes) -> bool:
    return isinstance(answer, list) and bool(answer) and answer[0] == word


def _decide(decisions: Decisions, asked: Sequence[bytes]) -> None:
    for place in range(0, len(asked), 3):
        parent_id, condition, result = (text.decode() for text in asked[place : place + 3])
        edge = Edge(parent_id=parent_id, kind=EdgeKind.CONDITIONAL, condition=condition)
        outcome = decide(edge, Status.COMPLETED, result)
        error = details = ""
        if outcome is not Outcome.SATISFIED:
            told = spelled(orphaned(edge, outcome, Status.COMPLETED))
            error, details = told["error"], told["details"]
        decisions.setdefault(parent_id, {})[condition] = (outcome.value, error, details)


def _key_taken(key: str, holder: str) -> KeyTaken:
    _, type_, name = decode(key, type=tuple[str, str, str])
    return KeyTaken(name, holder, type_)


_REFUSALS: dict[str, Callable[..., PenstockError]] = {
    "JobNotFound": JobNotFound,
    "IllegalTransition": IllegalTransition,
    "KeyTaken": _key_taken,
    "ParentNotFound": ParentNotFound,
    "DependencyCycle": lambda *path: DependencyCycle(path),
}
