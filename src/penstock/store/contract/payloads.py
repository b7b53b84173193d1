"""What a search expects in the arguments of a job."""

from collections.abc import Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

Condition = tuple[list[str], Any]
"""The steps of a path, and the value expected there."""


def conditions_of(payload: Sequence[tuple[str, str]]) -> list[Condition]:
    """Dotted paths and JSON texts, taken apart."""
    return [(path.split("."), decode(value)) for path, value in payload]


def holds(payload: str | bytes, conditions: Sequence[Condition]) -> bool:
    """Whether all values are where they are expected; never in what is no JSON."""
    if not conditions:
        return True
    try:
        document = decode(payload)
    except (DecodeError, UnicodeDecodeError):
        return False
    return all(_found(document, path, value) for path, value in conditions)


def _found(document: Any, path: Sequence[str], expected: Any) -> bool:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and _is_place(step, document):
            document = document[int(step)]
        else:
            return False
    return _same(document, expected)


def _is_place(step: str, among: Sequence[Any]) -> bool:
    return step.isascii() and step.isdigit() and int(step) < len(among)


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: a number is the same however it is spelled, and true is no number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def spellings(text: str) -> list[str]:
    """A text as it may be written; stores fold the case of ASCII by themselves, and no other."""
    small = text.lower()
    found = (text, small, text.upper(), small.title())
    return list({_ascii_lower(each): each for each in found}.values())


def _ascii_lower(text: str) -> str:
    return text.encode().lower().decode()
