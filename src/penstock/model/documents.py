"""Records as JSON, with times in ISO 8601; the types that describe such documents; and back."""

from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct, defstruct
from msgspec.structs import fields

from penstock.model.clock import from_iso, iso

R = TypeVar("R", bound=Struct)
Moment = Annotated[datetime, Meta(tz=True)]
TIMES = {"at", "since", "until", "valid_from", "valid_to"}


def document(record: Any) -> Any:
    """A record, and all that is in it, as a script wants to read it."""
    if isinstance(record, Struct):
        if _is_document(type(record)):
            return msgspec.to_builtins(record)
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
def documented(kind: type[Struct], name: str = "") -> type[Struct]:
    """The type of such a document: that of the record, with times where it has milliseconds.

    `name` is for one whose class is called like another's, which the API's document has, too.
    """
    hints = get_type_hints(kind, include_extras=True)
    given: list[Any] = []
    for field in fields(kind):
        hint = hints[field.name]
        timed = is_time(field.name) and int in (hint, *get_args(hint))
        type_ = _timed(hint) if timed else _opened(hint)
        if field.default is not NODEFAULT:
            given.append((field.name, type_, field.default))
        elif field.default_factory is not NODEFAULT:
            factory = msgspec.field(default_factory=field.default_factory)
            given.append((field.name, type_, factory))
        else:
            given.append((field.name, type_))
    called = f"{name or kind.__name__}Document"
    made = defstruct(called, given, kw_only=True, module=kind.__module__)
    made.__doc__ = kind.__doc__
    return made


def is_time(name: str) -> bool:
    """Whether a field of whole numbers holds a time in milliseconds."""
    return name in TIMES or name.endswith(("_at", "_until"))


def record(kind: type[R], told: Any) -> R:
    """The record that a document was made of."""
    return msgspec.convert(_milliseconds(kind, told), kind)


def _milliseconds(hint: Any, told: Any) -> Any:
    """A document with its times as records have them; what is no record is left as it is."""
    meant = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if isinstance(told, list):
        inner = next((get_args(each)[0] for each in meant if get_origin(each) is list), Any)
        return [_milliseconds(inner, each) for each in told]
    if not isinstance(told, dict):
        return told
    inner = next((get_args(each)[1] for each in meant if get_origin(each) is dict), None)
    if inner is not None:
        return {name: _milliseconds(inner, value) for name, value in told.items()}
    kind = next((each for each in meant if _is_record(each) and not _is_document(each)), None)
    if kind is None:
        return told
    hints = get_type_hints(kind)
    return {
        name: from_iso(value)
        if is_time(name) and isinstance(value, str)
        else _milliseconds(hints.get(name, Any), value)
        for name, value in told.items()
    }


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _is_document(kind: type[Struct]) -> bool:
    """Whether a record has names of its own in JSON: it is then told as it is, times and all."""
    return kind.__struct_encode_fields__ != kind.__struct_fields__


def _timed(hint: Any) -> Any:
    timed: Any = Moment
    return timed | None if type(None) in get_args(hint) else timed


def _opened(hint: Any) -> Any:
    """A type with the records in it replaced."""
    if _is_record(hint):
        return hint if _is_document(hint) else documented(hint)
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(_opened(each) for each in arguments)]  # noqa: UP007
    if origin in (list, dict):
        return origin.__class_getitem__(tuple(_opened(each) for each in arguments))
    return hint
