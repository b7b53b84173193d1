"""Events in the dashboard: the pipeline as a picture, the log, and what was given up."""

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.events.dead import DeadEvent, DeadEvents
from penstock.events.event import Event
from penstock.events.health import PipelineHealth, look
from penstock.events.log import EventFilter
from penstock.events.picture import LEVELS, narrow, shown_state, wide
from penstock.events.pipeline import ConsumerState, Pipeline
from penstock.events.stream import StreamState
from penstock.extension import Request
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreError
from penstock.model.wording import counted
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SHOWN = 50
LATEST = 8
STREAM_SECONDS = 1.0
FILTERS = ("session_id", "event_type", "platform")
MARKS = {
    "behind": "put off under pressure; rebuilt when it is over",
    "unenriched": "applied without enrichment; rebuilt when the pressure is over",
    "incomplete": "an event of them was given up",
    "waiting": "wait for the replay of an event",
}
"""What sessions that are not as the log says are called, and why they are not."""


SIZES = {
    "log": "the log",
    "archive": "files of the archive",
    "wal": "written ahead by SQLite",
    "spool": "spooled here",
    "stream": "the stream in memory",
}
"""What takes room, in words."""


class ConsumerRow(Struct, frozen=True):
    """A consumer with its colour and its state in words."""

    state: ConsumerState
    status: str
    words: str


async def show_pipeline(request: Request) -> dict[str, Any]:
    """All of it, drawn, with the latest dead letters."""
    app = request.app
    state, stream = await Pipeline(app).state(), await stream_state(app)
    health = await health_of(app)
    return {
        "state": state,
        "stream": stream,
        "timings": [] if health is None else health.timings,
        "utilisation": {} if health is None else health.utilisation,
        "sizes": {} if health is None else health.sizes,
        "size_words": SIZES,
        "pictures": {"wide": wide(state, stream), "slim": narrow(state, stream)},
        "rows": [ConsumerRow(each, *shown_state(each)) for each in state.consumers],
        "level": LEVELS[state.pressure.level.value],
        "letters": await DeadEvents(app).list(limit=LATEST),
        "dead": sum(state.dead.values()),
        "marks": MARKS,
    }


async def stream_state(app: "Penstock") -> StreamState | None:
    """What waits in the stream in front of the log; None without one, or while it is away."""
    if app.events.stream is None:
        return None
    try:
        async with asyncio.timeout(STREAM_SECONDS):
            found: StreamState = await app.events.stream.state()
            return found
    except Exception:
        return None  # the page is about the rest, too; health says that it is away


async def health_of(app: "Penstock") -> PipelineHealth | None:
    """The figures of the pipeline; None while they cannot be had, which its checks say."""
    try:
        async with asyncio.timeout(STREAM_SECONDS):
            return await look(app)
    except (StoreError, TimeoutError):
        return None


async def steer(request: Request) -> str:
    """Pause a consumer, or let it go on."""
    name, action = request.form.get("name", ""), request.form.get("action", "")
    pipeline = Pipeline(request.app, Operator(request.app, request.actor).actor)
    if action == "pause":
        await pipeline.pause(name)
        return f"{name} is paused."
    if action == "resume":
        await pipeline.resume(name)
        return f"{name} goes on."
    raise InvalidOption("action", action, "one of: pause, resume")


async def show_log(request: Request) -> dict[str, Any]:
    """The last events that match, the latest first; or a page in the order of the log."""
    given = {name: request.query.get(name, "") for name in FILTERS}
    after = _whole(request.query.get("after", ""))
    where = {name: value or None for name, value in given.items()}
    if after is None:
        name = "last_of_tenant" if request.tenant else "last_events"
        name = "last_of_session" if where["session_id"] else name
        asked = {**where, "tenant": request.tenant, "limit": SHOWN}
        events: list[Event] = await request.app.events.ask(name, asked)
    else:
        events = await request.app.events.find(
            EventFilter(**where, tenant=request.tenant, after=after, limit=SHOWN)
        )
    return {
        "events": events,
        "given": given,
        "following": events[-1].sequence if len(events) == SHOWN else None,
        "from_start": after is not None,
    }


async def show_dead(request: Request) -> dict[str, Any]:
    """A page of what was given up, the latest first."""
    source, before = request.query.get("source", ""), request.query.get("before", "")
    letters = await _dead(request).list(source or None, before=before or None, limit=SHOWN)
    counts = await DeadEvents(request.app).count() if request.tenant is None else {}
    return {
        "letters": letters,
        "source": source,
        "counts": counts,
        "following": letters[-1].id if len(letters) == SHOWN else None,
        "before": before,
    }


async def settle(request: Request) -> str:
    """Replay a dead letter, or drop it."""
    letters, action = _dead(request), request.form.get("action", "")
    letter_id = request.form.get("letter", "")
    if action == "drop":
        dropped = await letters.drop(letter_id)
        return f"The dead letter of {_called(dropped)} is dropped."
    if action != "replay":
        raise InvalidOption("action", action, "one of: replay, drop")
    letter = await letters.get(letter_id)
    try:
        events = await letters.replay(letter_id)
    except Exception as error:
        if type(error).__module__.startswith("penstock."):
            raise
        raise InvalidOption("letter", letter_id, f"one that can be applied ({error})") from error
    return f"{counted(events, 'event')} of {_called(letter)} replayed."


async def count_dead(app: "Penstock") -> int:
    """How many events were given up."""
    return sum((await DeadEvents(app).count()).values())


def _dead(request: Request) -> DeadEvents:
    actor = Operator(request.app, request.actor, request.tenant).actor
    return DeadEvents(request.app, actor)


def _called(letter: DeadEvent) -> str:
    return letter.event_id or letter.id


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
