"""Events over HTTP: append them, read them, and see what consumers make of them."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from penstock.events.archive_api import background, work_document
from penstock.events.background import Tell, Work
from penstock.events.dead import DeadEvent, DeadEvents
from penstock.events.event import Event, NewEvent, Session
from penstock.events.log import Appended, EventFilter, Events
from penstock.events.pipeline import ConsumerState, Pipeline, PipelineState
from penstock.events.pressure import Level
from penstock.extension import Request
from penstock.model.clock import iso, milliseconds
from penstock.operate.actor import Operator, own_tenant
from penstock.operate.documents import document

REBUILD = "rebuild:"

Limit = Annotated[int, Meta(ge=1, le=1_000)]


class AppendedList(Struct, kw_only=True):
    """What was appended, in the order in which it was sent."""

    events: list[Appended]


class EventDocument(Struct, kw_only=True):
    """An event of the log."""

    sequence: Annotated[int, Meta(description="Its place in the log.")]
    event_id: str
    timestamp: Annotated[datetime, Meta(description="When it happened.")]
    ingested_at: datetime
    event_type: Annotated[str, Meta(examples=["tool_use"])]
    session_id: str
    platform: str
    tenant_id: str
    person: str | None
    slot: int
    priority: int
    hook_type: str | None
    payload: dict[str, Any]
    metadata: dict[str, Any]


class EventList(Struct, kw_only=True):
    """A page of the log, the oldest first."""

    events: list[EventDocument]
    next: Annotated[int | None, Meta(description="Go on with `after=`; absent at the end.")]


class WantedEvents(Struct, kw_only=True):
    """Which events are asked for."""

    session_id: str | None = None
    event_type: str | None = None
    platform: str | None = None
    tenant: str | None = None
    since: Annotated[datetime | None, Meta(description="Happened at this time or later.")] = None
    until: Annotated[datetime | None, Meta(description="Happened before this time.")] = None
    after: Annotated[int, Meta(ge=0, description="With a greater sequence.")] = 0
    limit: Limit = 100


class DeadEventDocument(Struct, kw_only=True):
    """An event that was given up."""

    id: str
    source: Annotated[str, Meta(description="The consumer that gave it up, or `ingest`.")]
    sequence: int | None
    event_id: str
    event_type: str
    platform: str
    session_id: str
    tenant_id: str
    person: str | None
    reason: str
    tries: int
    size: int
    sha256: str
    failed_at: datetime
    document: Annotated[str | None, Meta(description="What ingest was given, as text.")]


class DeadEventList(Struct, kw_only=True):
    """A page of dead letters, the latest first."""

    letters: list[DeadEventDocument]
    next: Annotated[str | None, Meta(description="Go on with `before=`; absent at the end.")]


class WantedLetters(Struct, kw_only=True):
    """Which dead letters are asked for."""

    source: Annotated[str | None, Meta(description="A consumer, or `ingest`.")] = None
    before: str | None = None
    limit: Limit = 100


class Replaying(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a dead letter is replayed."""

    enqueue: Annotated[bool, Meta(description="Enqueue jobs that never were.")] = False


MaybeReplaying = Replaying | None


class SessionDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A session, which is unique within a platform of a tenant."""

    session_id: Annotated[str, Meta(min_length=1)]
    platform: str = ""
    tenant_id: str = ""


class Rebuilding(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is derived anew, and how."""

    session: Annotated[
        SessionDocument | None, Meta(description="This session alone; else all of them.")
    ] = None
    enqueue: Annotated[bool, Meta(description="Enqueue jobs that never were.")] = False


MaybeRebuilding = Rebuilding | None


class Replayed(Struct, kw_only=True):
    """What a replay did."""

    events: Annotated[int, Meta(description="How many events were applied or appended.")]


class LevelDocument(Struct, kw_only=True):
    """A level that was reached, when and why."""

    at: datetime
    level: Level
    reason: str


class PressureDocument(Struct, kw_only=True):
    """The level that stands, and what the last check saw."""

    level: Level
    reason: str
    since_at: datetime | None
    checked_at: datetime | None
    consumer: Annotated[str | None, Meta(description="Who is furthest behind.")]
    depth: int
    lag_ms: int
    sheds: Annotated[dict[str, int], Meta(description="Who puts off events of which priority on.")]
    behind: Annotated[dict[str, int], Meta(description="How many sessions are to be made anew.")]
    history: list[LevelDocument]


class PipelineDocument(Struct, kw_only=True):
    """All of the pipeline at one moment."""

    at: datetime
    latest: Annotated[int, Meta(description="The sequence of the last event.")]
    per_second: Annotated[float, Meta(description="Events that came in, of late.")]
    pressure: PressureDocument
    consumers: list[ConsumerState]
    dead: Annotated[dict[str, int], Meta(description="Dead letters, by who gave them up.")]


class ConsumerList(Struct, kw_only=True):
    """Every consumer that ever ran on this store."""

    consumers: list[ConsumerState]


async def append_events(request: Request) -> dict[str, Any]:
    """Append one event or many, in one commit: all of them or, if one is refused, none.

    An event that comes again, with the same id and time, is there once.
    """
    bound = request.tenant
    events: list[NewEvent] = request.body
    if bound is not None:
        events = [
            replace(event, tenant_id=own_tenant(bound, event.tenant_id or None)) for event in events
        ]
    return {"events": await _events(request).append_many(events)}


async def list_events(request: Request) -> dict[str, Any]:
    """Events of the log, the oldest first."""
    wanted: WantedEvents = request.query
    where = EventFilter(
        session_id=wanted.session_id,
        event_type=wanted.event_type,
        platform=wanted.platform,
        tenant=own_tenant(request.tenant, wanted.tenant),
        since=None if wanted.since is None else milliseconds(wanted.since),
        until=None if wanted.until is None else milliseconds(wanted.until),
        after=wanted.after,
        limit=wanted.limit,
    )
    found = await _events(request).find(where)
    more = found[-1].sequence if len(found) == wanted.limit else None
    return {"events": [event_document(event) for event in found], "next": more}


async def get_event(request: Request) -> dict[str, Any]:
    """One event of the log."""
    found = await _events(request).get(request.path["event_id"], tenant=request.tenant)
    return event_document(found)


async def list_dead_events(request: Request) -> dict[str, Any]:
    """Dead letters of events, the latest first."""
    wanted: WantedLetters = request.query
    found = await _dead(request).list(wanted.source, before=wanted.before, limit=wanted.limit)
    more = found[-1].id if len(found) == wanted.limit else None
    return {"letters": [letter_document(letter) for letter in found], "next": more}


async def replay_dead_event(request: Request) -> Replayed:
    """Try a dead letter again; what its consumer derived from the session is made anew."""
    how: Replaying = request.body or Replaying()
    done = await _dead(request).replay(request.path["letter_id"], enqueue=how.enqueue)
    return Replayed(events=done)


async def drop_dead_event(request: Request) -> dict[str, Any]:
    """Forget a dead letter; what it is about stays undone."""
    return letter_document(await _dead(request).drop(request.path["letter_id"]))


async def list_consumers(request: Request) -> ConsumerList:
    """Every consumer, how far behind it is, and what it could not do."""
    return ConsumerList(consumers=(await _pipeline(request).state()).consumers)


async def pause_consumer(request: Request) -> ConsumerState:
    """Have a consumer stop after its batches; what comes waits for it."""
    return await _pipeline(request).pause(request.path["name"])


async def resume_consumer(request: Request) -> ConsumerState:
    """Let a consumer go on where it stopped."""
    return await _pipeline(request).resume(request.path["name"])


async def rebuild_consumer(request: Request) -> dict[str, Any]:
    """Derive anew what a consumer made of one session, at once, or of all, in the background.

    `GET /api/consumers/{name}/rebuild` says how far that is. One that goes on already is refused,
    and one that was stopped begins again: who reads sees the old result of a session or the new.
    """
    name, how = request.path["name"], request.body or Rebuilding()
    pipeline, now = _pipeline(request), request.app.store.clock.now()
    work = f"{REBUILD}{name}"
    pipeline.rebuildable(name)
    if how.session is not None:
        session = Session(how.session.tenant_id, how.session.platform, how.session.session_id)
        done = await pipeline.rebuild(name, session, enqueue=how.enqueue)
        ended_at = request.app.store.clock.now()
        told = Work(
            name=work, state="done", done=done, total=1, started_at=now, updated_at=ended_at
        )
        return work_document(told)

    async def run(tell: Tell) -> int:
        return await pipeline.rebuild(name, enqueue=how.enqueue, show=tell)

    return work_document(await background(request).start(work, run))


async def read_rebuild(request: Request) -> dict[str, Any]:
    """How far the rebuild of a consumer is that was last asked for here."""
    return work_document(await background(request).get(f"{REBUILD}{request.path['name']}"))


async def read_pipeline(request: Request) -> dict[str, Any]:
    """What comes in, the level of pressure, and how far each consumer has come."""
    return pipeline_document(await _pipeline(request).state())


def pipeline_document(state: PipelineState) -> dict[str, Any]:
    """The pipeline as a script wants to read it."""
    history = [document(change) for change in state.pressure.history]
    pressure = document(state.pressure) | {"history": history}
    return asdict(state) | {"at": iso(state.at), "pressure": pressure}


def event_document(event: Event) -> dict[str, Any]:
    """An event as a script wants to read it."""
    times = {"timestamp": iso(event.timestamp), "ingested_at": iso(event.ingested_at)}
    return asdict(event) | times


def letter_document(letter: DeadEvent) -> dict[str, Any]:
    """A dead letter as a script wants to read it."""
    return asdict(letter) | {"failed_at": iso(letter.failed_at)}


def _events(request: Request) -> Events:
    found: Events = request.app.events
    return found


def _dead(request: Request) -> DeadEvents:
    actor = Operator(request.app, request.actor, request.tenant).actor
    return DeadEvents(request.app, actor)


def _pipeline(request: Request) -> Pipeline:
    return Pipeline(request.app, Operator(request.app, request.actor).actor)
