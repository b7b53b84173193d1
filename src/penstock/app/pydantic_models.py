"""Pydantic models as JSON and back. Pydantic itself is never imported: a model brings it along."""

import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

MASK = "**********"
"""How Pydantic writes a secret."""


def is_model(value: Any) -> bool:
    """Say whether a value or a type is a model of Pydantic."""
    return hasattr(value, "model_dump") and hasattr(value, "model_validate_json")


def dump(model: Any) -> Any:
    """Return the plain data of a model, from which `load` makes an equal one.

    By names, which every model takes back since Pydantic 2.11; aliases may be different for reading
    and for writing.
    """
    data = _dumped(model, by_alias=False)
    if not _by_name(model.__class__) and not _comes_back(model, data):
        aliased = _dumped(model, by_alias=True)
        data = aliased if _comes_back(model, aliased) else data
    if _may_hold_secrets(model.__class__) and MASK in repr(data) and _holds_secret(model):
        raise TypeError("a secret would be stored as asterisks")
    return data


def load(kind: Any, data: bytes) -> Any:
    """Return a model from JSON, which a strict one reads more kindly than Python's values."""
    try:
        return kind.model_validate_json(data, **_by_name(kind))
    except ValueError as error:
        raise ValueError(_told(error)) from error


def _dumped(model: Any, *, by_alias: bool) -> Any:
    return model.model_dump(mode="json", by_alias=by_alias, round_trip=True)


def _comes_back(model: Any, data: Any) -> bool:
    try:
        return bool(model.__class__.model_validate_json(msgspec.json.encode(data)) == model)
    except ValueError:
        return False


@lru_cache(maxsize=1000)
def _by_name(kind: Any) -> dict[str, bool]:
    known = inspect.signature(kind.model_validate_json).parameters
    return {"by_name": True, "by_alias": True} if "by_name" in known else {}


@lru_cache(maxsize=1000)
def _may_hold_secrets(kind: Any) -> bool:
    try:
        return "'writeOnly': True" in str(kind.model_json_schema())
    except Exception:  # a model that no schema describes is looked into each time
        return True


def _holds_secret(value: Any) -> bool:
    if hasattr(value, "get_secret_value"):
        return True
    inside: Iterable[Any] = ()
    if is_model(value):
        inside = vars(value).values()
    elif isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inside = value
    return any(_holds_secret(each) for each in inside)


def _told(error: ValueError) -> str:
    """Return what is wrong with each field, without the links to Pydantic's pages."""
    problems: list[dict[str, Any]] = getattr(error, "errors", list)()
    if not problems:
        return str(error)
    lines = [f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in problems]
    return "; ".join(lines)
