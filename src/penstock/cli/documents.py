"""Records of the store as JSON: times in ISO-8601, stored documents decoded."""

import json
from typing import Any

import msgspec

from penstock.model.clock import iso

STORED = {"payload", "result", "checkpoint", "metadata", "error_details", "trace_context"}
TIMES = {"at", "lease_until"}


def document(record: msgspec.Struct) -> dict[str, Any]:
    """A record as a script wants to read it."""
    return fields(msgspec.structs.asdict(record))


def fields(values: dict[str, Any]) -> dict[str, Any]:
    """The same names, with readable values."""
    return {name: _readable(name, value) for name, value in values.items()}


def dead_document(letter: msgspec.Struct) -> dict[str, Any]:
    """A dead letter with its snapshot and executions opened."""
    opened = document(letter)
    for name in ("snapshot", "executions"):
        found = decoded(opened[name])
        opened[name] = _opened(found)
    return opened


def decoded(text: str | None) -> Any:
    """A stored document; text that is no JSON is given back as it is."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _opened(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _time(name, value) for name, value in found.items()}
    if isinstance(found, list):
        return [_opened(item) for item in found]
    return found


def _readable(name: str, value: Any) -> Any:
    if name in STORED and isinstance(value, str):
        return decoded(value)
    if isinstance(value, tuple | list):
        return [str(item) for item in value]
    return _time(name, value)


def _time(name: str, value: Any) -> Any:
    if isinstance(value, int) and (name.endswith("_at") or name in TIMES):
        return iso(value)
    return value
