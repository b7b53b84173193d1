"""Documents of the API as the records they were made of: `client/documents.py` the other way."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from penstock.client.documents import STORED, TIMES
from penstock.client.schedules import ScheduleView
from penstock.client.stats import Point, Stats
from penstock.model.clock import from_iso
from penstock.model.controls import Breaker, BreakerState, Limit, LimitState
from penstock.model.explain import Explanation, Reason
from penstock.model.schedule import Schedule
from penstock.store.contract import DeadLetter

S = TypeVar("S", bound=msgspec.Struct)
Document = dict[str, Raw]

_MAY_BE_PLAIN = {"trace_context"}
_NOTHING = Raw(b"null")


def record(kind: type[S], document: Mapping[str, Raw], **changed: Any) -> S:
    """A record out of a document; what a newer server says besides is left out."""
    names = set(kind.__struct_fields__) - changed.keys()
    known = {name: value(name, raw) for name, raw in document.items() if name in names}
    return msgspec.convert({**known, **changed}, kind)


def value(name: str, raw: Raw) -> Any:
    """A field as a record has it: times in milliseconds, stored documents as JSON text."""
    found = msgspec.json.decode(raw)
    if name in STORED and not (name in _MAY_BE_PLAIN and isinstance(found, str)):
        return _text(raw)
    is_time = name.endswith("_at") or name in TIMES
    return from_iso(found) if is_time and isinstance(found, str) else found


def one(raw: Raw | bytes) -> Document:
    """A document, its fields unread."""
    return msgspec.json.decode(raw, type=Document)


def several(raw: Raw) -> list[Document]:
    """A list of them."""
    return msgspec.json.decode(raw, type=list[Document])


def explanation(document: Document) -> Explanation:
    """Where a job stands, and why."""
    reasons = [record(Reason, each) for each in several(document["reasons"])]
    return record(Explanation, document, reasons=reasons)


def stats(document: Document) -> Stats:
    """What happened in a window of time."""
    series = [record(Point, each) for each in several(document["series"])]
    return record(Stats, document, series=series)


def schedule_view(document: Document) -> ScheduleView:
    """A schedule as it stands."""
    made = record(
        Schedule,
        document,
        payload=_text(document["payload"]),
        options=_text(document["options"]),
        enabled=not msgspec.json.decode(document["paused"]),
        run_count=msgspec.json.decode(document["runs"]),
        last_run_at=_moment(document["last_run"]),
        next_run_at=_moment(document["next_run"]),
    )
    return ScheduleView(made)


def limit_state(document: Document) -> LimitState:
    """A limit, and how much of it is taken."""
    return record(LimitState, document, limit=record(Limit, document))


def breaker_state(document: Document) -> BreakerState:
    """A breaker, and what has happened to it."""
    return record(BreakerState, document, breaker=record(Breaker, document))


def dead_letter(document: Document) -> DeadLetter:
    """A dead letter; in a list it comes without its snapshot and executions."""
    told = {name: _text(document.get(name, _NOTHING)) for name in ("snapshot", "executions")}
    return record(DeadLetter, document, **{name: text or "null" for name, text in told.items()})


def _text(raw: Raw) -> str | None:
    text = bytes(raw).decode()
    return None if text == "null" else text


def _moment(raw: Raw) -> int | None:
    found = msgspec.json.decode(raw)
    return None if found is None else from_iso(found)
