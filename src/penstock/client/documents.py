"""Records of the store as JSON: times in ISO-8601, stored documents decoded."""

import json
from typing import TYPE_CHECKING, Any

from penstock.model.clock import iso

if TYPE_CHECKING:
    from msgspec import Struct

STORED = {"payload", "result", "checkpoint", "metadata", "error_details", "trace_context"}
TIMES = {"at", "lease_until"}


def document(record: "Struct") -> dict[str, Any]:
    """A record as a script wants to read it."""
    from msgspec.structs import asdict

    return {name: _readable(name, value) for name, value in asdict(record).items()}


def dead_document(letter: "Struct") -> dict[str, Any]:
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
