"""An event: something that happened, as it is handed in and as it stands in the log."""

from types import MappingProxyType
from typing import Any
from zlib import crc32

from msgspec import Struct, field

from penstock.model.clock import LATEST as LAST_TIME
from penstock.model.clock import from_iso
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.ids import new_id

SLOTS = 256
"""Every event has one of so many slots, by its session; what is divided among consumers."""

ORDINARY = 3
PRIORITIES = MappingProxyType(
    {
        "user_prompt": 1,
        "acceptance_decision": 1,
        "tool_use": 2,
        "completion": 2,
        "assistant_response": 2,
        "code_change": 2,
        "performance": 3,
        "latency": 3,
        "session_start": 4,
        "session_end": 4,
        "debug": 5,
        "trace": 5,
    }
)
"""What is shed first when consumers fall behind: 5, then 4. Other types are ordinary."""

TEXT_LIMITS = MappingProxyType(
    {"event_id": 128, "event_type": 128, "platform": 64, "session_id": 512, "hook_type": 128}
)

class InvalidEvent(PenstockError):
    """An event that cannot be kept as it is."""

    def __init__(self, event_id: str, problem: str) -> None:
        self.event_id = event_id
        self.problem = problem
        super().__init__(f"Event {event_id or '(without an id)'} {problem}.")


class EventNotFound(PenstockError):
    """An id that no event of the log has."""

    def __init__(self, event_id: str) -> None:
        self.event_id = event_id
        super().__init__(f"No event has the id {event_id!r}; `penstock events ls` lists them.")


class NewEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happened: its type, in which session of which platform, when, and all that is known.

    An event that comes again, with the same id and time, is there once. Who gives an id also gives
    the time, in UTC milliseconds or as ISO 8601 with a zone; without both, it happened now.
    """

    event_type: str
    session_id: str = ""
    platform: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    event_id: str = ""
    timestamp: int | str | None = None
    hook_type: str | None = None
    tenant_id: str = ""
    person: str | None = None
    enqueued_at: int | str | None = None
    retry_count: int = 0


class Event(Struct, frozen=True, kw_only=True):
    """An event of the log."""

    sequence: int
    event_id: str
    timestamp: int
    ingested_at: int
    event_type: str
    session_id: str
    platform: str
    tenant_id: str
    person: str | None
    slot: int
    priority: int
    hook_type: str | None
    payload: dict[str, Any]
    metadata: dict[str, Any]


class Body(Struct, frozen=True, omit_defaults=True):
    """What is kept of an event beside its columns, compressed."""

    payload: dict[str, Any]
    metadata: dict[str, Any] = {}
    hook_type: str | None = None


def identified(event: NewEvent, now: int) -> tuple[str, int]:
    """The id and the time of an event; what cannot be kept is refused."""
    for name, limit in TEXT_LIMITS.items():
        text = getattr(event, name) or ""
        if len(text) > limit:
            raise InvalidEvent(event.event_id[:40], f"has a {name} of more than {limit} characters")
        if "\0" in text:
            raise InvalidEvent(event.event_id[:40].replace("\0", ""), f"has a NUL in its {name}")
    if not event.event_type:
        raise InvalidEvent(event.event_id, "has no event_type")
    if event.timestamp is None:
        if event.event_id:
            problem = "has no timestamp; one that comes again is known by its id and its time"
            raise InvalidEvent(event.event_id, problem)
        return new_id(), now
    return event.event_id or new_id(), _milliseconds(event)


def _milliseconds(event: NewEvent) -> int:
    given = event.timestamp
    if isinstance(given, str):
        try:
            given = from_iso(given)
        except InvalidOption as error:
            problem = f"has the timestamp {given[:40]!r}; expected ISO 8601 with a zone"
            raise InvalidEvent(event.event_id, problem) from error
    if given is None or not 0 <= given <= LAST_TIME:
        raise InvalidEvent(event.event_id, f"has the timestamp {given}; expected 1970 to 9999")
    return given


def slot_of(event: NewEvent, event_id: str) -> int:
    """The slot of an event: that of its session, or its own if it belongs to none."""
    whose = event.session_id or event_id
    return crc32(f"{event.tenant_id}\n{event.platform}\n{whose}".encode()) % SLOTS
