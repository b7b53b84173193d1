"""Records as JSON, with times in ISO 8601; and the types that describe such documents."""

from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct, defstruct
from msgspec.structs import fields

from penstock.model.clock import iso

Moment = Annotated[datetime, Meta(tz=True)]


def document(record: Any) -> Any:
    """A record, and all that is in it, as a script wants to read it."""
    if isinstance(record, Struct):
        return {
            name: iso(value) if is_time(name) and isinstance(value, int) else document(value)
            for name in record.__struct_fields__
            for value in (getattr(record, name),)
        }
    if isinstance(record, list | tuple):
        return [document(each) for each in record]
    if isinstance(record, dict):
        return {name: document(each) for name, each in record.items()}
    return record


@cache
def documented(kind: type[Struct]) -> type[Struct]:
    """The type of such a document: that of the record, with times where it has milliseconds."""
    hints = get_type_hints(kind, include_extras=True)
    given: list[Any] = []
    for field in fields(kind):
        type_ = _timed(hints[field.name]) if is_time(field.name) else _opened(hints[field.name])
        if field.default is not NODEFAULT:
            given.append((field.name, type_, field.default))
        elif field.default_factory is not NODEFAULT:
            factory = msgspec.field(default_factory=field.default_factory)
            given.append((field.name, type_, factory))
        else:
            given.append((field.name, type_))
    made = defstruct(f"{kind.__name__}Document", given, kw_only=True, module=__name__)
    made.__doc__ = kind.__doc__
    return made


def is_time(name: str) -> bool:
    """Whether a field holds a time in milliseconds."""
    return name == "at" or name.endswith("_at")


def _timed(hint: Any) -> Any:
    timed: Any = Moment
    return timed | None if type(None) in get_args(hint) else timed


def _opened(hint: Any) -> Any:
    """A type with the records in it replaced."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return documented(hint)
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(_opened(each) for each in arguments)]  # noqa: UP007
    if origin in (list, dict):
        return origin.__class_getitem__(tuple(_opened(each) for each in arguments))
    return hint
