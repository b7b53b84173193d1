"""`remote.events`: the log of another machine, through its server."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import asdict, replace

from penstock.events.archive import Archived
from penstock.events.archive import Show as ArchiveShow
from penstock.events.background import WorkFailed
from penstock.events.dead import PAGE, DeadEvent
from penstock.events.event import Event, EventFields, NewEvent, Session, identified
from penstock.events.log import EVERY, Appended, EventFilter, Narrowed, made
from penstock.events.pipeline import ConsumerState, Show
from penstock.events.query import MOST_ROWS, Answer
from penstock.model.clock import SystemClock, from_iso, iso
from penstock.operate.erase import Erased

if TYPE_CHECKING:
    from penstock.remote.client import Remote


FIRST_LOOK, LAST_LOOK = 0.05, 2.0
"""Seconds between two looks at work that goes on in the server."""


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

    @property
    def pipeline(self) -> "RemotePipeline":
        """Pause and resume consumers there, and rebuild what they derived."""
        return RemotePipeline(self._remote)

    async def query(self, sql: str, **narrowed: Unpack[Narrowed]) -> Answer:
        """Answer a SELECT over the view `events`, those of the archive included."""
        asked: dict[str, Any] = {"sql": sql, "limit": MOST_ROWS, **narrowed}
        for name in ("since", "until"):
            if name in asked:
                asked[name] = iso(asked[name])
        found = await self._remote.ask("POST", "event-query", asked, repeatable=True)
        rows = [tuple(row) for row in found["rows"]]
        return Answer(found["columns"], rows, found["more"])

    async def archive(self, before: int | None = None) -> list[Archived]:
        """Move the whole months before a time to files of the archive, which are then returned."""
        return await self._archive(before, jobs=False)

    async def archive_jobs(
        self, before: int | None = None, *, show: ArchiveShow | None = None
    ) -> list[Archived]:
        """Move jobs that ended in the whole months before a time to files of the archive."""
        made = await self._archive(before, jobs=True)
        if show is not None:
            for file in made:
                show(file.file, file.rows)
        return made

    async def erase(self, session: Session) -> Erased:
        """Erase all that there is of a session, whatever was derived from it included."""
        told = await self._remote.ask("POST", "event-erasures", asdict(session), repeatable=True)
        return Erased(told["erased"], told["remarks"])

    async def _archive(self, before: int | None, *, jobs: bool) -> list[Archived]:
        told = {"before": None if before is None else iso(before), "jobs": jobs}
        begun = await self._remote.ask("POST", "event-archive", told)

        async def look() -> Any:
            works = (await self._remote.ask("GET", "event-archive"))["work"]
            return next(work for work in works if work["name"] == begun["name"])

        await _done(look)
        files = [_file(each) for each in (await self._remote.ask("GET", "event-archive"))["files"]]
        since, subject = from_iso(begun["started_at"]), "jobs" if jobs else "events"
        return [file for file in files if file.made_at >= since and file.subject == subject]


class RemotePipeline:
    """`remote.events.pipeline`: the consumers there."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def pause(self, name: str) -> ConsumerState:
        """Have a consumer stop after its batches; what comes waits for it, and nothing is lost."""
        return await self._steer(name, "pause")

    async def resume(self, name: str) -> ConsumerState:
        """Let a consumer go on where it stopped."""
        return await self._steer(name, "resume")

    async def rebuild(
        self,
        name: str,
        session: Session | None = None,
        *,
        enqueue: bool = False,
        show: Show | None = None,
    ) -> int:
        """Derive anew what a consumer made of a session, or of all; how many sessions.

        It goes on there if this program ends.
        """
        path = f"consumers/{quote(name)}/rebuild"
        told = {"session": None if session is None else asdict(session), "enqueue": enqueue}
        begun = await self._remote.ask("POST", path, told)
        if begun["state"] == "done":
            return int(begun["done"])
        return int((await _done(lambda: self._remote.ask("GET", path), show))["done"])

    async def _steer(self, name: str, action: str) -> ConsumerState:
        path = f"consumers/{quote(name)}/{action}"
        return msgspec.convert(await self._remote.ask("POST", path), ConsumerState)


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


async def _done(look: Callable[[], Awaitable[Any]], show: Show | None = None) -> Any:
    """How some work ended that goes on in the server; WorkFailed if it did not end well."""
    pause = FIRST_LOOK
    while (work := await look())["state"] == "running":
        if show is not None:
            show(work["done"], work["total"])
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_LOOK)
    if work["state"] != "done":
        raise WorkFailed(work["name"], work["state"], work["error"])
    return work


def _file(document: dict[str, Any]) -> Archived:
    times: dict[str, Any] = {
        name: from_iso(document[name]) for name in ("first_at", "last_at", "made_at")
    }
    return Archived(**document | times)


def _named(event: NewEvent) -> NewEvent:
    event_id, timestamp = identified(event, SystemClock().now())
    return replace(event, event_id=event_id, timestamp=timestamp)


def _event(document: dict[str, Any]) -> Event:
    times = {name: from_iso(document[name]) for name in ("timestamp", "ingested_at")}
    return msgspec.convert(document | times, Event)


def _letter(document: dict[str, Any]) -> DeadEvent:
    return msgspec.convert(document | {"failed_at": from_iso(document["failed_at"])}, DeadEvent)
