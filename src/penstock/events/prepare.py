"""Events made ready to be written: checked, through the gate, compressed, before a transaction."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from penstock.events.codec import Codec, best, dictionary_of, packed, packed_all, unpacked
from penstock.events.columns import ORDINARY, PRIORITIES, extracted
from penstock.events.event import (
    Body,
    InvalidEvent,
    NewEvent,
    Session,
    identified,
)
from penstock.events.gate import Gate, pass_unchanged, redacting
from penstock.extension import load

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


T = TypeVar("T")


class Row(Struct, frozen=True):
    """An event made ready to be written, outside the transaction that writes it."""

    bindings: tuple[Any, ...]
    """What the statement takes; the codec and the compressed body come last."""

    @property
    def event_id(self) -> str:
        """Its id."""
        return str(self.bindings[0])

    @property
    def timestamp(self) -> int:
        """When it happened."""
        return int(self.bindings[1])

    @property
    def platform(self) -> str:
        """Whose dictionary its body was compressed with."""
        return str(self.bindings[5])

    @property
    def key(self) -> tuple[str, int, str]:
        """What it is known by, within its tenant."""
        return self.event_id, self.timestamp, self.bindings[6]

    @property
    def about(self) -> tuple[str, str, str]:
        """What else an event that comes again has in common with it: type, session, platform."""
        return self.bindings[3], self.bindings[4], self.platform

    @property
    def body(self) -> bytes:
        """The body as it was before it was compressed."""
        return unpacked(self.bindings[-1], self.bindings[-2])


class _Draft(NamedTuple):
    """A row that lacks its compressed body."""

    bindings: tuple[Any, ...]
    platform: str
    body: bytes

    def holding(self, data: bytes) -> Row:
        return Row((*self.bindings, data))


def _gate(app: "Penstock", named: str) -> Gate:
    """The gate that the settings name, else that of an extension, else our own."""
    if named:
        gate: Gate = load(named)
        return gate
    made = (extension.adds.get("events.gate") for extension in app.extensions)
    make = next((each for each in made if each), None)
    return redacting if make is None else load(make)(app)


class Preparer:
    """Makes rows of events: checked, through the gate, compressed."""

    def __init__(self, app: "Penstock") -> None:
        settings = app.extensions.settings("events")
        self.gate: Gate = _gate(app, settings.gate)
        self._codec = Codec(settings.codec or best())
        self.limit: int = settings.event_limit
        self._priorities = {**PRIORITIES, **settings.types}
        for extension in app.extensions:
            self._priorities.update(extension.adds.get("events.types", {}))

    def rows(self, events: Sequence[NewEvent], now: int) -> list[Row]:
        """All of them as rows; the first that cannot be kept is refused."""
        rows: list[Row] = []
        for row in self.each(events, now):
            if isinstance(row, Exception):
                raise row
            rows.append(row)
        return rows

    def each(self, events: Sequence[NewEvent], now: int) -> list[Row | Exception]:
        """Each as a row, or why it cannot be kept; they are searched and compressed together."""
        if len(events) == 1:
            return [self._attempt(self.row, events[0], now)]
        fitting = [self._attempt(_fitting, event) for event in events]
        kept = [event for event in fitting if isinstance(event, NewEvent)]
        passing = iter(pass_unchanged(kept) if self.gate is redacting else [False] * len(kept))
        drafts = [
            event
            if isinstance(event, Exception)
            else self._attempt(self._draft, event, now, passes=next(passing))
            for event in fitting
        ]
        return self._compressed(drafts)

    def row(self, event: NewEvent, now: int, *, own: bool = False) -> Row:
        """An event as a row; one of Penstock's `own` passes no gate, and no limit holds for it."""
        draft = self._draft(_fitting(event), now, own=own)
        return draft.holding(packed(draft.body, self._codec, draft.platform))

    def _draft(
        self, event: NewEvent, now: int, *, own: bool = False, passes: bool = False
    ) -> _Draft:
        """An event before it is compressed; what `passes` the gate unchanged need not go."""
        event_id, timestamp = identified(event, now)
        clean, body = (event, _body(event)) if own else self._clean(event, passes=passes)
        session = Session(clean.tenant_id, clean.platform, clean.session_id or event_id)
        bindings = (
            event_id,
            timestamp,
            now,
            clean.event_type,
            session.session_id,
            clean.platform,
            clean.tenant_id,
            clean.person,
            session.slot,
            self._priorities.get(clean.event_type, ORDINARY),
            *extracted(clean.payload, clean.metadata),
            self._codec.value,
        )
        return _Draft(bindings, clean.platform, body)

    def _compressed(self, drafts: Sequence[_Draft | Exception]) -> list[Row | Exception]:
        """The same with their compressed bodies, those of a platform in one go."""
        by_platform: dict[str, list[bytes]] = {}
        for draft in drafts:
            if isinstance(draft, _Draft):
                by_platform.setdefault(draft.platform, []).append(draft.body)
        compressed = {
            platform: iter(packed_all(bodies, self._codec, platform))
            for platform, bodies in by_platform.items()
        }
        return [
            draft.holding(next(compressed[draft.platform])) if isinstance(draft, _Draft) else draft
            for draft in drafts
        ]

    @staticmethod
    def _attempt(work: Callable[..., T], *given: Any, **told: Any) -> T | Exception:
        try:
            return work(*given, **told)
        except Exception as refused:  # whatever a gate raises: nothing unsanitised is kept
            return refused

    def rewritten(self, body: Body, platform: str) -> tuple[Any, ...]:
        """A body that takes the place of another: what the columns hold, its codec, its data."""
        data = packed(_encoder.encode(body), self._codec, platform)
        return (*extracted(body.payload, body.metadata), self._codec.value, data)

    def clean(self, event: NewEvent, now: int) -> NewEvent:
        """An event as it may be written anywhere: checked, through the gate, with id and time."""
        event = _fitting(event)
        event_id, timestamp = identified(event, now)
        clean, _ = self._clean(event, passes=False)
        return replace(clean, event_id=event_id, timestamp=timestamp)

    def _clean(self, event: NewEvent, *, passes: bool) -> tuple[NewEvent, bytes]:
        """What the gate lets through of an event, and its body."""
        clean = event
        if not passes:
            clean = self.gate(event if self.gate is redacting else _plain(event))
        body = _written(clean)
        if len(body) > self.limit:
            size = f"{len(body):,} bytes, more than the {self.limit:,} of events.event_limit"
            raise InvalidEvent(event.event_id, f"takes {size}")
        return clean, body

    def dictionary(self, platform: str) -> tuple[int, bytes] | None:
        """What bodies of a platform are compressed with."""
        return dictionary_of(platform) if self._codec is Codec.ZSTD else None


def _body(event: NewEvent) -> bytes:
    return _encoder.encode(Body(event.payload, event.metadata, event.hook_type))


def _written(event: NewEvent) -> bytes:
    try:
        return _body(event)
    except RecursionError as error:
        raise InvalidEvent(event.event_id, "is nested too deeply") from error
    except UnicodeEncodeError as error:
        problem = "holds half a surrogate pair, which is no text"
        raise InvalidEvent(event.event_id, problem) from error
    except _UNWRITABLE as error:
        raise InvalidEvent(event.event_id, f"cannot be written as JSON ({error})") from error


_encoder = msgspec.json.Encoder()
_UNWRITABLE = (TypeError, UnicodeError, RecursionError, msgspec.MsgspecError)


def _plain(event: NewEvent) -> NewEvent:
    """The same with nothing in it but what JSON has: a gate has no other texts to look for."""
    try:
        return msgspec.convert(msgspec.to_builtins(event, str_keys=True), NewEvent)
    except _UNWRITABLE as error:
        raise InvalidEvent(str(event.event_id), f"does not fit ({error})") from error


def _fitting(event: NewEvent) -> NewEvent:
    """An event whose fields are of the types they should be; what cannot be made so is refused."""
    for name, types in _TYPES:
        if type(getattr(event, name)) not in types:
            return _plain(event)
    return event


_TYPES = (
    *((name, (str,)) for name in ("event_type", "session_id", "platform", "event_id", "tenant_id")),
    *((name, (dict,)) for name in ("payload", "metadata")),
    *((name, (str, type(None))) for name in ("hook_type", "person")),
    ("timestamp", (int, str, type(None))),
)
