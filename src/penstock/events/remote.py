"""`remote.events`: the log of another machine, through its server."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import asdict, replace

from penstock.events.dead import PAGE, DeadEvent
from penstock.events.event import Event, EventFields, NewEvent, identified
from penstock.events.log import EVERY, Appended, EventFilter, made
from penstock.model.clock import SystemClock, from_iso, iso

if TYPE_CHECKING:
    from penstock.remote.client import Remote


class RemoteEvents:
    """What `app.events` does, for a program elsewhere; the server's gate stands before its log."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    @property
    def dead(self) -> "RemoteDeadEvents":
        """What was given up: list it, replay it, drop it."""
        return RemoteDeadEvents(self._remote)

    async def append(self, event: str | NewEvent, /, **fields: Unpack[EventFields]) -> Appended:
        """Append an event: `append("tool_use", session_id="s1", payload={…})`."""
        return (await self.append_many([made(event, fields)]))[0]

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events in one commit, all of them or, if one is refused, none.

        Each has its id before it is sent: one whose answer was lost is sent again, and is there
        once.
        """
        if not events:
            return []
        told = [_named(event) for event in events]
        answer = await self._remote.ask("POST", "events", told, repeatable=True)
        return msgspec.convert(answer["events"], list[Appended])

    async def get(self, event_id: str) -> Event:
        """An event by its id; NotFound if there is none."""
        return _event(await self._remote.ask("GET", f"events/{quote(event_id)}"))

    async def find(self, where: EventFilter = EVERY) -> list[Event]:
        """Events of the log, the oldest first."""
        asked = {name: value for name, value in asdict(where).items() if value is not None}
        for name in ("since", "until"):
            if name in asked:
                asked[name] = iso(asked[name])
        answer = await self._remote.ask("GET", f"events?{urlencode(asked)}")
        return [_event(each) for each in answer["events"]]


class RemoteDeadEvents:
    """`remote.events.dead`: what was given up there."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def replay(self, letter_id: str, *, enqueue: bool = False) -> int:
        """Try again what was given up; how many events were applied or appended."""
        path = f"dead-events/{quote(letter_id)}/replay"
        answer = await self._remote.ask("POST", path, {"enqueue": enqueue})
        return int(answer["events"])

    async def drop(self, letter_id: str) -> DeadEvent:
        """Forget a letter; what it is about stays undone."""
        return _letter(await self._remote.ask("DELETE", f"dead-events/{quote(letter_id)}"))

    async def list(
        self, source: str | None = None, *, before: str | None = None, limit: int = PAGE
    ) -> list[DeadEvent]:
        """A page of them, the latest first; `before` is the id to go on after."""
        given = {"source": source, "before": before, "limit": limit}
        asked = urlencode({name: value for name, value in given.items() if value is not None})
        answer = await self._remote.ask("GET", f"dead-events?{asked}")
        return [_letter(each) for each in answer["letters"]]


def _named(event: NewEvent) -> NewEvent:
    event_id, timestamp = identified(event, SystemClock().now())
    return replace(event, event_id=event_id, timestamp=timestamp)


def _event(document: dict[str, Any]) -> Event:
    times = {name: from_iso(document[name]) for name in ("timestamp", "ingested_at")}
    return msgspec.convert(document | times, Event)


def _letter(document: dict[str, Any]) -> DeadEvent:
    return msgspec.convert(document | {"failed_at": from_iso(document["failed_at"])}, DeadEvent)
