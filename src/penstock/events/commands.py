"""`penstock events`: the log, its consumers and what they gave up, at the terminal."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from penstock.events.api import event_document, letter_document, pipeline_document
from penstock.events.consumer import Consumer
from penstock.events.dead import DeadEvent, DeadEvents
from penstock.events.event import Event, InvalidEvent, NewEvent, Session
from penstock.events.feed import Lane, fetch
from penstock.events.log import EventFilter
from penstock.events.pipeline import ConsumerState, Pipeline
from penstock.extension import Shown
from penstock.model.clock import from_iso, iso
from penstock.model.errors import InvalidOption
from penstock.model.wording import ago, counted, span
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

LOOK_SECONDS = 0.5
CHUNK = 500
BRIEF = 80

Progress = Callable[[str, int, int | None], None]
Name = Annotated[str, "The consumer, as `events stats` names it."]
SessionOption = Annotated[str | None, "--session", "Only this session."]
TypeOption = Annotated[str | None, "--type", "Only events of this type."]
Platform = Annotated[str | None, "Only events of this platform."]
Tenant = Annotated[str | None, "Only events of this tenant."]


async def ls(
    app: "Penstock",
    session: SessionOption = None,
    type_: TypeOption = None,
    platform: Platform = None,
    tenant: Tenant = None,
    since: Annotated[str | None, "Happened at this time or later: 2026-11-15T03:28Z."] = None,
    until: Annotated[str | None, "Happened before this time."] = None,
    after: Annotated[int, "Only those with a greater sequence."] = 0,
    limit: Annotated[int, "At most so many."] = 50,
) -> Shown:
    """List events of the log, the oldest first."""
    where = EventFilter(
        session_id=session,
        event_type=type_,
        platform=platform,
        tenant=tenant,
        since=None if since is None else from_iso(since),
        until=None if until is None else from_iso(until),
        after=after,
        limit=limit,
    )
    found = await app.events.find(where)
    people: Any = [_row(event) for event in found] or "No event matches."
    return Shown(people, [event_document(event) for event in found])


async def show(app: "Penstock", event_id: Annotated[str, "The event."]) -> Shown:
    """Show one event with all that is known of it."""
    event: Event = await app.events.get(event_id)
    document = event_document(event)
    body = {name: document.pop(name) for name in ("payload", "metadata")}
    text = msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
    return Shown((document, text), event_document(event))


async def append(
    app: "Penstock",
    type_: Annotated[str | None, "--type", "The event's type; without it, NDJSON is read."] = None,
    session: Annotated[str, "--session", "Its session."] = "",
    platform: Annotated[str, "Its platform."] = "",
    payload: Annotated[str, "What is known of it, as a JSON object."] = "{}",
) -> Shown:
    """Append an event, or those that stand on standard input, one JSON document a line."""
    if type_ is not None:
        fields = {"event_type": type_, "session_id": session, "platform": platform}
        event = _new(f'{{"payload": {payload}}}', **fields)
        done = [await app.events.append(event)]
        place = f"at {done[0].sequence:,}" if done[0].sequence else "on its way to the log"
        return Shown(f"Event {done[0].event_id} is {place}.", done)
    done = []
    for chunk in _chunks(sys.stdin):
        done += await app.events.append_many(chunk)
    new = sum(each.created for each in done)
    told = f"{counted(new, 'event')} appended."
    if new < len(done):
        told = f"{counted(new, 'event')} appended, {len(done) - new:,} were there already."
    return Shown(told, done)


async def tail(
    app: "Penstock",
    session: SessionOption = None,
    type_: TypeOption = None,
    platform: Platform = None,
    lines: Annotated[int, "-n", "--lines", "Begin with so many of the last."] = 10,
    follow: Annotated[bool, "-f", "--follow", "Go on with what comes, until Ctrl-C."] = False,
) -> AsyncIterator[Shown]:
    """Show the last events, and with --follow those that come."""
    after = max(0, await app.events.latest() - lines)
    where = EventFilter(session_id=session, event_type=type_, platform=platform)
    while True:
        page: list[Event] = await app.events.find(
            msgspec.structs.replace(where, after=after, limit=CHUNK)
        )
        for event in page:
            after = event.sequence
            yield Shown(_line(event), event_document(event))
        if not follow and len(page) < CHUNK:
            return
        if not page:
            await asyncio.sleep(LOOK_SECONDS)


async def tap(app: "Penstock", name: Name) -> AsyncIterator[Shown]:
    """Show live what a consumer gets, and whether it applied it, until Ctrl-C.

    It looks over the consumer's shoulder: nothing is taken from it, and nothing is applied here.
    """
    await Pipeline(app).consumer(name)
    known = app.consumer.known()
    consumer: Consumer = known.get(name) or Consumer(name=name, apply=_nothing)
    dead = await _latest_letter(app, name)
    lane = Lane(first=0, last=255, position=await app.events.latest())
    waiting: dict[int, Event] = {}
    while True:
        fetched = await fetch(app, consumer, lane)
        for event in fetched.events:
            lane.position = event.sequence
            waiting[event.sequence] = event
            yield _tapped(event, "gets", "")
        if len(fetched.events) < fetched.control.batch and not fetched.control.paused:
            lane.position = fetched.head
        for letter in await _letters_after(app, name, dead):
            dead = letter.id
            waiting.pop(letter.sequence or 0, None)
            yield Shown(
                f"{letter.event_id}  given up after {letter.tries} tries: {letter.reason}",
                letter_document(letter) | {"what": "given up"},
            )
        for event in await _passed(app, name, waiting):
            del waiting[event.sequence]
            yield _tapped(event, "applied", f" {span(app.store.clock.now() - event.ingested_at)}")
        if not fetched.events:
            await asyncio.sleep(LOOK_SECONDS)


async def stats(app: "Penstock") -> Shown:
    """Show what comes in, and for every consumer how far behind it is."""
    state = await Pipeline(app).state()
    pressure, ingest = state.pressure, state.dead.get("ingest", 0)
    head = {
        "events": f"{state.latest:,} in the log, {state.per_second:,.1f} a second of late",
        "level": f"{pressure.level}, because {pressure.reason}",
        "dead letters": f"{sum(state.dead.values()):,}, {ingest:,} of them of ingest",
    }
    rows: Any = [_consumer_row(each) for each in state.consumers] or "No consumer has run yet."
    return Shown((head, rows), pipeline_document(state))


async def rebuild(
    app: "Penstock",
    actor: str,
    progress: Progress,
    name: Annotated[str | None, "--consumer", "Only this consumer."] = None,
    session: SessionOption = None,
    platform: Annotated[str, "The session's platform."] = "",
    tenant: Annotated[str, "The session's tenant."] = "",
    enqueue: Annotated[bool, "Enqueue jobs that never were for their events."] = False,
) -> Shown:
    """Derive anew what consumers made of a session, or of all, while everything goes on."""
    pipeline = Pipeline(app, Operator(app, actor).actor)
    known = app.consumer.known()
    names = [name] if name is not None else [n for n, each in known.items() if each.reset]
    if not names:
        expected = "one of the application; name it with --app MODULE:APP"
        raise InvalidOption("consumer", name or "none", expected)
    chosen = None if session is None else Session(tenant, platform, session)
    done: dict[str, int] = {}
    for each in names:
        done[each] = await pipeline.rebuild(
            each,
            chosen,
            enqueue=enqueue,
            show=lambda n, of, each=each: progress(f"Rebuilding {each}", n, of),  # type: ignore[misc]
        )
    told = tuple(f"{n}: {counted(count, 'session')} rebuilt." for n, count in done.items())
    return Shown(told, done)


async def dead(
    app: "Penstock",
    source: Annotated[str | None, "Only those of a consumer, or of `ingest`."] = None,
    before: Annotated[str | None, "Go on after this one."] = None,
    limit: Annotated[int, "At most so many."] = 50,
) -> Shown:
    """List events that were given up, by ingest or by a consumer, the latest first."""
    found = await DeadEvents(app).list(source, before=before, limit=limit)
    now = app.store.clock.now()
    people: Any = [_letter_row(letter, now) for letter in found] or "No event was given up."
    return Shown(people, [letter_document(letter) for letter in found])


async def replay(
    app: "Penstock",
    actor: str,
    progress: Progress,
    letter: Annotated[str | None, "--letter", "Only this dead letter."] = None,
    source: Annotated[str | None, "Those of a consumer, or of `ingest`."] = None,
    enqueue: Annotated[bool, "Enqueue jobs that never were for their events."] = False,
) -> Shown:
    """Replay dead letters, one or all of a source; sessions are made anew with them."""
    letters = DeadEvents(app, Operator(app, actor).actor)
    if letter is not None:
        events = await letters.replay(letter, enqueue=enqueue)
        return Shown(f"{counted(events, 'event')} replayed.", {"events": events})
    if source is None:
        raise InvalidOption("letter", "none", "a dead letter, or a --source of which all are meant")
    done, refused = await letters.replay_all(
        source, enqueue=enqueue, show=lambda n, of: progress("Replaying", n, of)
    )
    told = f"{counted(done, 'dead letter')} replayed."
    failed = f"{counted(len(refused), 'dead letter')} failed again." if refused else ""
    people = (told, *(f"{each}: {reason}" for each, reason in refused.items()))
    return Shown(people, {"replayed": done, "refused": refused}, failed)


async def drop(app: "Penstock", actor: str, letter: Annotated[str, "The dead letter."]) -> Shown:
    """Forget a dead letter; what it is about stays undone."""
    dropped = await DeadEvents(app, Operator(app, actor).actor).drop(letter)
    return Shown(f"Dead letter {letter} is dropped.", letter_document(dropped))


async def pause(app: "Penstock", actor: str, name: Name) -> Shown:
    """Have a consumer stop after its batches; what comes waits for it."""
    state = await Pipeline(app, Operator(app, actor).actor).pause(name)
    return Shown(f"Consumer {name} is paused.", state)


async def resume(app: "Penstock", actor: str, name: Name) -> Shown:
    """Let a consumer go on where it stopped."""
    state = await Pipeline(app, Operator(app, actor).actor).resume(name)
    held = " The pressure still holds it." if state.held else ""
    return Shown(f"Consumer {name} goes on.{held}", state)


async def forget(app: "Penstock", actor: str, name: Name) -> Shown:
    """Forget a consumer that is gone, so that archiving and erasing wait for it no longer."""
    await Pipeline(app, Operator(app, actor).actor).forget(name)
    told = f"Consumer {name} is forgotten. What it derived in tables of its own stays there."
    return Shown(told, {"consumer": name})


def _new(text: str, **fields: Any) -> NewEvent:
    try:
        document = msgspec.json.decode(text, type=dict[str, Any])
        return msgspec.convert(document | fields, NewEvent)
    except msgspec.MsgspecError as error:
        raise InvalidEvent("", f"cannot be read: {error}") from error


def _chunks(lines: Iterable[str]) -> Iterable[list[NewEvent]]:
    chunk: list[NewEvent] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            chunk.append(msgspec.json.decode(line, type=NewEvent))
        except msgspec.MsgspecError as error:
            raise InvalidEvent("", f"of line {number} cannot be read: {error}") from error
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _nothing(_: Any, __: Any) -> None:
    """Nothing is applied here."""


async def _latest_letter(app: "Penstock", name: str) -> str:
    found = await DeadEvents(app).list(name, limit=1)
    return found[0].id if found else ""


async def _letters_after(app: "Penstock", name: str, after: str) -> list[DeadEvent]:
    found = await DeadEvents(app).list(name, limit=CHUNK)
    return [letter for letter in reversed(found) if letter.id > after]


async def _passed(app: "Penstock", name: str, waiting: dict[int, Event]) -> list[Event]:
    """Those that the consumer has come past."""
    if not waiting:
        return []
    rows = await app.read(lambda tx: tx.events.queries.rows("cursors", (name,)))
    positions = {int(slot): int(position) for slot, position, *_ in rows}
    return [event for event in waiting.values() if positions[event.slot] >= event.sequence]


def _tapped(event: Event, what: str, took: str) -> Shown:
    return Shown(f"{_line(event)}  {what}{took}", event_document(event) | {"what": what})


def _line(event: Event) -> str:
    brief = msgspec.json.encode(event.payload).decode()
    shown = brief if len(brief) <= BRIEF else f"{brief[:BRIEF]}…"
    where = f"{event.platform}/{event.session_id}" if event.platform else event.session_id
    return f"{event.sequence:>8}  {iso(event.timestamp)}  {event.event_type}  {where}  {shown}"


def _row(event: Event) -> dict[str, Any]:
    return {
        "sequence": event.sequence,
        "happened": iso(event.timestamp),
        "type": event.event_type,
        "platform": event.platform,
        "session": event.session_id,
        "event": event.event_id,
    }


def _consumer_row(state: ConsumerState) -> dict[str, Any]:
    return {
        "consumer": state.name,
        "state": state.state,
        "role": state.role,
        "behind": state.depth,
        "lag": span(state.lag_ms),
        "workers": f"{state.workers} of {state.wanted_workers}",
        "dead": state.dead,
        "sessions": ", ".join(f"{n:,} {mark}" for mark, n in state.sessions.items() if n)
        or "all whole",
    }


def _letter_row(letter: DeadEvent, now: int) -> dict[str, Any]:
    return {
        "letter": letter.id,
        "source": letter.source,
        "type": letter.event_type,
        "session": letter.session_id,
        "when": ago(letter.failed_at, now),
        "reason": letter.reason,
    }
