"""An event: something that happened, as it is handed in and as it stands in the log."""

from types import MappingProxyType
from typing import Any, TypedDict

from msgspec import Struct, field

from penstock.events.columns import slot_of
from penstock.model.clock import LATEST, from_iso
from penstock.model.errors import NOT_SHOWN, InvalidOption
from penstock.model.ids import new_id
from penstock.model.not_found import NotFound
from penstock.model.redact import redact

LONGEST = MappingProxyType(
    {
        "event_id": 128,
        "event_type": 128,
        "platform": 64,
        "session_id": 512,
        "hook_type": 128,
        "tenant_id": 200,
        "person": 200,
    }
)
"""The longest texts that an event is known by, in bytes; PostgreSQL indexes no longer ones."""


class InvalidEvent(InvalidOption):
    """An event that cannot be kept as it is."""

    def __init__(self, event_id: str, problem: str) -> None:
        super().__init__("event", NOT_SHOWN, "one that can be kept")
        self.event_id = event_id
        self.problem = problem
        known = redact(event_id)[:40]  # the gate has not seen it yet
        self.args = (f"Event {known or 'without an id'} {problem}.",)


class EventNotFound(NotFound):
    """An id that no event of the log has."""

    def __init__(self, event_id: str) -> None:
        self.event_id = event_id
        super().__init__(f"No event has the id {event_id!r}; `penstock events ls` lists them.")


class EventFields(TypedDict, total=False):
    """What `append` takes beside the type of an event."""

    session_id: str
    platform: str
    payload: dict[str, Any]
    metadata: dict[str, Any]
    event_id: str
    timestamp: int | str
    hook_type: str | None
    tenant_id: str
    person: str | None


class NewEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happened: its type, in which session of which platform, when, and all that is known.

    An event that comes again, with the same id and time, is there once. Who gives an id also gives
    the time, in UTC milliseconds or as ISO 8601 with a zone; without both, it happened now. One
    that names no session is a session of its own.
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


class Session(Struct, frozen=True, order=True):
    """Whose events keep their order; what a consumer derives belongs to one, and goes with it."""

    tenant_id: str
    platform: str
    session_id: str

    @property
    def key(self) -> tuple[str, str, str]:
        """All of it, in the order of its columns."""
        return self.tenant_id, self.platform, self.session_id

    @property
    def slot(self) -> int:
        """Where its events are, among those that are divided."""
        return slot_of(self.tenant_id, self.platform, self.session_id)


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

    @property
    def session(self) -> Session:
        """Its session, which is unique only within a platform of a tenant."""
        return Session(self.tenant_id, self.platform, self.session_id)


class Body(Struct, frozen=True, omit_defaults=True):
    """What is kept of an event beside its columns, compressed."""

    payload: dict[str, Any]
    metadata: dict[str, Any] = {}
    hook_type: str | None = None
    redacted: bool = False
    """Whether something was taken out of it after it was appended."""


def identified(event: NewEvent, now: int) -> tuple[str, int]:
    """The id and the time of an event; what cannot be kept is refused."""
    for name, longest in LONGEST.items():
        text = getattr(event, name)
        if text:
            if len(text) > longest or (not text.isascii() and _size(text) > longest):
                raise InvalidEvent(event.event_id, f"has a {name} over {longest} bytes")
            if "\0" in text:
                raise InvalidEvent(event.event_id, f"has a NUL in its {name}")
    if not event.event_type or " " in event.event_type:
        raise InvalidEvent(event.event_id, "has no event_type that is a word without blanks")
    if event.timestamp is None:
        if event.event_id:
            problem = "has no timestamp; one that comes again is known by its id and its time"
            raise InvalidEvent(event.event_id, problem)
        return new_id(), now
    return event.event_id or new_id(), _milliseconds(event)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _milliseconds(event: NewEvent) -> int:
    given = event.timestamp
    if isinstance(given, str):
        try:
            given = from_iso(given)
        except InvalidOption as error:
            problem = "has a timestamp that is not ISO 8601 with a zone"
            raise InvalidEvent(event.event_id, problem) from error
    if given is None or not 0 <= given <= LATEST:
        raise InvalidEvent(event.event_id, f"has the timestamp {given}; expected 1970 to 9999")
    return given
