"""The trace log: events are appended in one commit, each once, and read by sequence."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from penstock.events.codec import Codec, best, packed, unpacked
from penstock.events.event import (
    LAST_TIME,
    ORDINARY,
    PRIORITIES,
    Body,
    Event,
    EventNotFound,
    InvalidEvent,
    NewEvent,
    identified,
    slot_of,
)
from penstock.extension import load
from penstock.model.redact import redact, redact_document

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.app.transact import Unit
    from penstock.extension import Queries

Gate = Callable[[NewEvent], NewEvent]
"""Takes out of an event what must not be kept, before anything of it is written."""

EXTRACTED: tuple[tuple[str, type], ...] = (
    *((name, str) for name in ("workspace_hash", "project_name", "uuid", "parent_uuid")),
    *((name, str) for name in ("request_id", "agent_id")),
    ("is_sidechain", int),
    *((name, str) for name in ("cwd", "version", "git_branch")),
    *((name, str) for name in ("message_role", "message_model", "message_id")),
    *((name, int) for name in ("input_tokens", "output_tokens")),
    *((name, int) for name in ("cache_creation_input_tokens", "cache_read_input_tokens")),
    *((name, int) for name in ("duration_ms", "tokens_used", "tool_calls_count")),
)
"""Columns that are filled from an event's metadata, or else its payload, where they fit."""


class Appended(Struct, frozen=True):
    """An event's id, and its place in the log; whether it was there before."""

    event_id: str
    sequence: int
    created: bool


def redacting(event: NewEvent) -> NewEvent:
    """The gate of the engine: secrets and e-mail addresses are replaced in every text."""
    payload = redact_document(msgspec.json.encode(event.payload).decode())
    metadata = redact_document(msgspec.json.encode(event.metadata).decode())
    return replace(
        event,
        session_id=redact(event.session_id),
        payload=msgspec.json.decode(payload),
        metadata=msgspec.json.decode(metadata),
    )


class Row(Struct, frozen=True):
    """An event made ready to be written, outside the transaction that writes it."""

    event_id: str
    timestamp: int
    bindings: tuple[Any, ...]
    body: bytes


class Writing:
    """`tx.events`: what a unit of work does with the log."""

    def __init__(self, queries: "Queries", app: "Penstock", unit: "Unit") -> None:
        self._queries = queries
        self._app = app
        self._now = unit.now

    def append(self, event: NewEvent) -> Appended:
        """Append an event in this commit; one that is there already changes nothing."""
        return self.append_many([event])[0]

    def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events in this commit, in their order."""
        return self.write(prepared(self._app, events, self._now))

    def rows(self, name: str, bindings: dict[str, Any]) -> list[tuple[Any, ...]]:
        """All rows of a question to the log."""
        return self._queries.rows(name, bindings)

    def write(self, rows: Sequence[Row]) -> list[Appended]:
        """Write what was made ready."""
        self._queries.row("lock")
        return [self._written(row) for row in rows]

    def _written(self, row: Row) -> Appended:
        sequence = self._queries.value("append", row.bindings)
        if sequence is not None:
            return Appended(row.event_id, int(sequence), True)
        found = self._queries.row("known", (row.event_id, row.timestamp))
        if found is None:
            raise InvalidEvent(row.event_id, "was removed while it was appended; append it again")
        if unpacked(found[2], found[1]) != row.body:
            problem = "is in the log with another content; give this one an id of its own"
            raise InvalidEvent(row.event_id, problem)
        return Appended(row.event_id, int(found[0]), False)


def prepared(app: "Penstock", events: Iterable[NewEvent], now: int) -> list[Row]:
    """Events as rows: checked, through the gate, compressed."""
    settings = app.extensions.settings("events")
    gate: Gate = load(settings.gate)
    codec, limit = settings.codec or best(), settings.event_limit
    return [_row(event, gate, Codec(codec), limit, now) for event in events]


def _row(event: NewEvent, gate: Gate, codec: Codec, limit: int, now: int) -> Row:
    event_id, timestamp = identified(event, now)
    clean = gate(event)
    body = msgspec.json.encode(Body(clean.payload, clean.metadata, clean.hook_type))
    if len(body) > limit:
        problem = f"takes {len(body):,} bytes, more than the {limit:,} of events.event_limit"
        raise InvalidEvent(event_id, problem)
    kept, data = packed(body, codec)
    bindings = (
        event_id,
        timestamp,
        now,
        clean.event_type,
        clean.session_id,
        clean.platform,
        clean.tenant_id,
        clean.person,
        slot_of(clean, event_id),
        PRIORITIES.get(clean.event_type, ORDINARY),
        *(_extracted(clean, name, kind) for name, kind in EXTRACTED),
        kept,
        data,
    )
    return Row(event_id, timestamp, bindings, body)


def _extracted(event: NewEvent, name: str, kind: type) -> Any:
    found = event.metadata.get(name, event.payload.get(name))
    return found if isinstance(found, kind) else None


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events to read, in their order; `after` is the sequence to go on from.

    Times are UTC milliseconds, `until` not included.
    """

    session_id: str | None = None
    event_type: str | None = None
    platform: str | None = None
    tenant: str | None = None
    since: int | None = None
    until: int | None = None
    after: int = 0
    limit: int = 100


EVERY = EventFilter()


class Events:
    """`app.events`: append, and read what was appended."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    async def append(self, event: NewEvent) -> Appended:
        """Append an event; it is in the log, on disk, when this returns."""
        return (await self.append_many([event]))[0]

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events in one commit, all of them or, if one is refused, none."""
        rows = prepared(self._app, events, self._app.store.clock.now())
        return await self._app.transact(lambda tx: tx.events.write(rows))

    async def get(self, event_id: str, *, tenant: str | None = None) -> Event:
        """An event by its id."""
        asked = {"event_id": event_id, "tenant": tenant}
        found = await self._app.read(lambda tx: tx.events.rows("by_id", asked))
        if not found:
            raise EventNotFound(event_id)
        return _event(found[0])

    async def find(self, where: EventFilter = EVERY) -> list[Event]:
        """Events of the log, the oldest first."""
        found = await self._app.read(lambda tx: tx.events.rows(*_query(where)))
        return [_event(row) for row in found]


def _query(where: EventFilter) -> tuple[str, dict[str, Any]]:
    asked = asdict(where)
    if where.session_id is not None:
        return "of_session", asked
    if where.since is None and where.until is None:
        return "all", asked
    return "within", asked | {"since": where.since or 0, "until": where.until or LAST_TIME + 1}


def _event(row: tuple[Any, ...]) -> Event:
    *columns, codec, data = row
    body = _body.decode(unpacked(data, codec))
    named = dict(zip(_COLUMNS, columns, strict=True))
    return Event(
        **named, hook_type=body.hook_type, payload=body.payload, metadata=body.metadata
    )


_body = msgspec.json.Decoder(Body)
_COLUMNS = Event.__struct_fields__[:11]
