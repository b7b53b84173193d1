"""Records of the store as JSON: times in ISO-8601, stored documents decoded."""

import json
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from penstock.model.clock import EARLIEST, LATEST, iso
from penstock.model.job import OPTIONS
from penstock.model.options import Keep, Seconds
from penstock.model.wording import span

if TYPE_CHECKING:
    from msgspec import Struct

    from penstock.model.audit import Entry
    from penstock.model.job import Job

STORED = {
    *("payload", "result", "checkpoint", "metadata", "error_details", "trace_context", "progress")
}
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


def entry_document(entry: "Entry") -> dict[str, Any]:
    """An entry of the audit log with its details opened."""
    return document(entry) | {"details": decoded(entry.details)}


def set_options(job: "Job", but: Container[str]) -> list[tuple[str, str]]:
    """The options of a job that are not as usual, but for some that have words of their own."""
    shown: list[tuple[str, str]] = []
    for name, option in OPTIONS.items():
        value = getattr(job, option.field, None)
        said = value is not None if isinstance(option, Keep) else value
        if name not in but and said and value != option.default:
            words = span(value) if option.unit == Seconds.unit else str(option.written(value))
            shown.append((name.replace("_", " "), words))
    return shown


def rest_of_progress(job: "Job") -> str:
    """What an object of progress says beside percent and message: `batch 2, total batches 5`."""
    progress = decoded(job.progress)
    if not isinstance(progress, dict):
        return ""
    shown = (job.progress_message, job.progress_percent)
    rest = {name: value for name, value in progress.items() if value not in shown}
    return ", ".join(f"{name} {_told(value)}" for name, value in rest.items())


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def decoded(stored: Any) -> Any:
    """A stored document; what is no text, or no JSON, is given back as it is."""
    if not isinstance(stored, str):
        return stored
    try:
        return json.loads(stored)
    except ValueError:
        return stored


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


def is_time(name: str) -> bool:
    """Whether a field holds a moment."""
    return name.endswith("_at") or name in TIMES


def _time(name: str, value: Any) -> Any:
    if isinstance(value, int) and is_time(name):
        # One row with a wild time must not keep a page of others from being read.
        return iso(min(max(value, EARLIEST), LATEST))
    return value
