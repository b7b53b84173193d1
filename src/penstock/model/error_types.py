"""Errors by a stable name, so that a server can tell its callers which one it met.

`urn:penstock:problem:job-not-found` is `JobNotFound`, in both directions.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from penstock.model import errors, refused, transfer
from penstock.model.errors import PenstockError

PREFIX = "urn:penstock:problem:"

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_HOMES = frozenset(module.__name__ for module in (errors, transfer, refused))


def urn_of(kind: type[PenstockError]) -> str:
    """The name of a class of errors; one made elsewhere has that of the class it is made of."""
    while kind.__module__ not in _HOMES:
        kind = next(base for base in kind.__bases__ if issubclass(base, PenstockError))
    return PREFIX + _CAPITAL.sub("-", kind.__name__).lower()


def fields_of(error: PenstockError) -> dict[str, Any]:
    """What an error knows besides its sentence, as far as JSON can say it."""
    return {name: value for name, value in vars(error).items() if _is_plain(value)}


def error_of(urn: str, sentence: str, fields: Mapping[str, Any]) -> PenstockError | None:
    """The error of that name with its sentence and fields; none of a name nobody knows."""
    kind = known_errors().get(urn)
    if kind is None:
        return None
    # Past __init__, which would write the sentence anew.
    error = kind.__new__(kind, sentence)
    error.args = (sentence,)
    vars(error).update({name: _tupled(value) for name, value in fields.items()})
    return error


@cache
def known_errors() -> dict[str, type[PenstockError]]:
    """Every error of ours by its name."""
    kinds: list[type[PenstockError]] = [PenstockError, *_below(PenstockError)]
    return {urn_of(kind): kind for kind in kinds}


def _below(kind: type[PenstockError]) -> Iterator[type[PenstockError]]:
    for each in kind.__subclasses__():
        if each.__module__ in _HOMES:
            yield each
            yield from _below(each)


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)
