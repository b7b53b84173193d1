"""Dead letters of ingest: events that cannot be written, each with its reason.

One that passed the gate is kept whole, to be replayed. Of one that did not, or that cannot be read,
a stub is left: its size, its hash, and what it is known by if that passes the gate.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.events.event import LONGEST, InvalidEvent, NewEvent
from penstock.model.clock import LATEST
from penstock.model.ids import derived_id
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.gate import Gate
    from penstock.events.prepare import Row

SOURCE = "ingest"
LONGEST_REASON = 1_000


class Letter(Struct, frozen=True, kw_only=True):
    """An event that was given up, as the table events_dead has it."""

    id: str
    source: str = SOURCE
    sequence: int | None = None
    event_id: str = ""
    event_type: str = ""
    platform: str = ""
    session_id: str = ""
    tenant_id: str = ""
    person: str | None = None
    reason: str
    tries: int = 1
    size: int
    sha256: str
    failed_at: int
    document: str | None = None


def stub(
    key: str, at: int, fields: Sequence[bytes], error: Exception, gate: "Gate", now: int
) -> Letter:
    """The letter of an entry of the stream that cannot be kept; `key` makes it the same again."""
    known = _known(fields, gate)
    return Letter(
        id=derived_id(at, SOURCE, key),
        **known,
        # The words of somebody's gate may hold what it should have taken out.
        reason=reason_of(error) if isinstance(error, InvalidEvent) else type(error).__name__,
        size=sum(map(len, fields)),
        sha256=_hash(fields),
        failed_at=now,
    )


def letter_of_row(key: str, at: int, row: "Row", error: Exception, tries: int, now: int) -> Letter:
    """The letter of an event that passed the gate and that the log does not take."""
    event_id, timestamp, _, event_type, session_id, platform, tenant_id, person = row.bindings[:8]
    event = NewEvent(
        event_id=event_id,
        timestamp=timestamp,
        event_type=event_type,
        session_id=session_id,
        platform=platform,
        tenant_id=tenant_id,
        person=person,
        **msgspec.json.decode(row.body),
    )
    return letter_of_event(event, error, now, key=key, at=at, tries=tries)


def letter_of_event(
    event: NewEvent,
    error: Exception,
    now: int,
    *,
    key: str | None = None,
    at: int | None = None,
    tries: int = 1,
) -> Letter:
    """The letter of an event that passed the gate; its document is the whole event."""
    document = msgspec.json.encode(event)
    moment = event.timestamp if at is None and isinstance(event.timestamp, int) else at
    return Letter(
        id=derived_id(min(moment or 0, LATEST), SOURCE, key or event.event_id),
        event_id=event.event_id,
        event_type=event.event_type,
        platform=event.platform,
        session_id=event.session_id,
        tenant_id=event.tenant_id,
        person=event.person,
        reason=reason_of(error),
        tries=tries,
        size=len(document),
        sha256=sha256(document).hexdigest(),
        failed_at=now,
        document=document.decode(),
    )


def reason_of(error: Exception) -> str:
    """Why it was given up, in words that hold no secret."""
    if isinstance(error, InvalidEvent):
        return redact(f"The event {error.problem}.")[:LONGEST_REASON]
    return redact(f"{type(error).__name__}: {error}")[:LONGEST_REASON]


async def bury(app: "Penstock", letters: Iterable[Letter], *, erasures: int | None = None) -> None:
    """Keep letters; one that is there already changes nothing.

    Those of what was read when there had been so many `erasures` are refused with ErasedMeanwhile
    if there was one since.
    """
    rows = [msgspec.structs.astuple(letter) for letter in letters]

    def work(tx: Any) -> None:
        if erasures is not None:
            tx.events.hold_unless_erased(erasures)
        tx.events.queries.many("bury", rows)

    await app.transact(work)


def _known(fields: Sequence[bytes], gate: "Gate") -> dict[str, Any]:
    """What an entry is known by, as far as that may be shown."""
    given = iter(fields)
    texts = {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in zip(given, given, strict=False)
    }
    known: dict[str, Any] = {
        name: texts[name]
        for name, longest in LONGEST.items()
        if name in texts and name != "hook_type"
        if len(texts[name]) <= longest and "\0" not in texts[name]
    }
    try:
        clean = gate(NewEvent(**{"event_type": "", **known}))  # pyright: ignore[reportArgumentType]
    except Exception:
        return {}
    return {name: getattr(clean, name) for name in known}


def _hash(fields: Sequence[bytes]) -> str:
    """A hash of all fields in their order, the length of each before it."""
    total = sha256()
    for each in fields:
        total.update(len(each).to_bytes(8, "big"))
        total.update(each)
    return total.hexdigest()
