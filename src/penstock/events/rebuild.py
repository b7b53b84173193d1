"""Rebuild: throw away what a consumer derived from a session, and derive it anew from the log.

It happens in one commit, up to where the consumer has come in the log, while its workers go on: who
reads sees the old result or the new one, and what comes later is applied to the new one.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.events import archive
from penstock.events.consumer import Applying, CannotRebuild, Consumer, Failing
from penstock.events.enrichment import NotEnriched, prepared_with
from penstock.events.event import Event, Session
from penstock.events.feed import Mark, Putting, buried, put_mark
from penstock.events.parquet import NoArchive
from penstock.model.errors import MissingExtra, PenstockError
from penstock.model.redact import redact
from penstock.model.store_errors import StoreError
from penstock.model.wording import counted, listed

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

PAGE = 500
SESSIONS = 200
LONGEST_REASON = 200
NOT_ITS_OWN = (StoreError, NoArchive, MissingExtra)
"""What no consumer is to blame for."""
NOTHING: Mapping[int, str] = {}

Show = Callable[[Session, int], None]
"""Hears which session was rebuilt, and from how many events."""


class SessionsFailed(PenstockError):
    """Sessions that could not be rebuilt, after all others were."""

    def __init__(self, consumer: str, failed: Mapping[Session, str], rebuilt: int) -> None:
        self.consumer = consumer
        self.failed = dict(failed)
        self.rebuilt = rebuilt
        named = [f"{session.session_id!r} ({why})" for session, why in failed.items()]
        super().__init__(
            f"Consumer {consumer!r} has rebuilt {counted(rebuilt, 'session')} and failed at "
            f"{counted(len(failed), 'session')}, which are as before: {listed(named)}."
        )


class Moved(Exception):
    """The consumer has come past more events of the session."""


async def rebuild(
    app: "Penstock",
    consumer: Consumer,
    session: Session | None = None,
    *,
    enqueue: bool = False,
    show: Show | None = None,
) -> int:
    """Rebuild a session, or all of them one by one; how many.

    Jobs are enqueued only if told to, and then those alone that never were for their events. One of
    all that fails is tried again without the events that were given up before; those that still
    fail are told at the end, in SessionsFailed.
    """
    if consumer.reset is None:
        raise CannotRebuild(consumer.name)
    if session is not None:
        events = await rebuild_session(app, consumer, session, enqueue=enqueue)
        if show is not None:
            show(session, events)
        return 1
    count, failed = 0, dict[Session, str]()
    async for each in _sessions(app):
        try:
            events = await _rebuild_anyway(app, consumer, each, enqueue=enqueue)
        except NOT_ITS_OWN:
            raise
        except Exception as error:
            failed[each] = redact(f"{type(error).__name__}: {error}")[:LONGEST_REASON]
            continue
        count += 1
        if show is not None:
            show(each, events)
    if failed:
        raise SessionsFailed(consumer.name, failed, count)
    return count


async def _rebuild_anyway(
    app: "Penstock", consumer: Consumer, session: Session, *, enqueue: bool
) -> int:
    try:
        return await rebuild_session(app, consumer, session, enqueue=enqueue)
    except NOT_ITS_OWN:
        raise
    except Exception:
        return await rebuild_session(app, consumer, session, enqueue=enqueue, keeps=True)


async def rebuild_session(
    app: "Penstock",
    consumer: Consumer,
    session: Session,
    *,
    enqueue: bool = False,
    without: Mapping[int, str] = NOTHING,
    keeps: bool = False,
) -> int:
    """Reset a session and apply its events in one commit; how many events those were.

    Those in `without`, by sequence, are given up for the reason that stands there; if it `keeps`
    the session's dead letters, those of before stay given up, too.
    """
    while True:
        try:
            standing, events = await to_replay(app, consumer, session)
            left_out = {**(await _given_up(app, consumer, session) if keeps else {}), **without}
            replayed = (standing, events, left_out)
            return await _rebuild_once(app, consumer, session, *replayed, enqueue=enqueue)
        except Moved:
            continue


async def _rebuild_once(
    app: "Penstock",
    consumer: Consumer,
    session: Session,
    standing: "Standing",
    events: Sequence[Event],
    without: Mapping[int, str],
    *,
    enqueue: bool,
) -> int:
    waits = consumer.failing is Failing.WAIT
    mark = Mark.WAITING if waits else Mark.INCOMPLETE
    until = min(without, default=None) if waits else None
    wanted = [
        event
        for event in events
        if event.sequence not in without and (until is None or event.sequence < until)
    ]
    pages = [wanted[n : n + PAGE] for n in range(0, len(wanted), PAGE)]
    prepared = [await _prepared(app, consumer, page) for page in pages]

    def work(tx: Any) -> None:
        stand_still(tx, consumer, session, standing)
        applying = Applying(tx, consumer.name, enqueues=enqueue)
        clear(applying, consumer, session)
        for each in prepared:
            consumer.apply(applying, each)
        queries = tx.events.queries
        whose = (consumer.name, *session.key)
        queries.run("unmark", whose)
        queries.run("unbury_session", (*whose, standing.after))
        if queries.value("letters_of_session", whose):
            lacks = "an event of it was given up earlier"
            put_mark(tx, consumer.name, Putting(session, Mark.INCOMPLETE, lacks, standing.after))
        for event in events:
            if event.sequence in without:
                reason = without[event.sequence]
                queries.run("bury", buried(consumer, event, reason, tx.now))
                put_mark(tx, consumer.name, Putting(session, mark, reason, event.sequence))

    await app.transact(work)
    return len(wanted)


class Standing(NamedTuple):
    """How far a consumer has come in a slot, and what tells that its events are not as they were.

    `marks` grow when events of the slot are erased or a session is made anew, `archives` when some
    leave the log. A replay begins after the sequence `after`.
    """

    position: int = 0
    marks: int = 0
    archives: int = 0
    after: int = 0


async def to_replay(
    app: "Penstock", consumer: Consumer, session: Session, *, most: int | None = None
) -> tuple[Standing, list[Event]]:
    """How far a consumer has come, and the events of a session until there, or the first `most`.

    Those that were archived are among them.
    """
    standing = await standing_of(app, consumer, session)
    after = await _begin(app, consumer, session)
    until = standing.position
    events = await archive.events_of(app, session, consumer.types, after, until)
    archived = len(events)
    async for page in _pages(app, consumer, session, after, until):
        events += page
        if most is not None and len(events) >= most:
            break
    if archived:
        events.sort(key=lambda event: event.sequence)
    return standing._replace(after=after), events[:most]


async def standing_of(app: "Penstock", consumer: Consumer, session: Session) -> Standing:
    """How far a consumer has come with a session."""
    slot = (consumer.name, session.slot)
    found = await app.read(lambda tx: tx.events.queries.row("slot_of", slot))
    return Standing(*map(int, found or ()))


def stand_still(tx: Any, consumer: Consumer, session: Session, standing: Standing) -> None:
    """Have nobody move a session's slot until the commit; Moved if its events are others by now."""
    now_at = hold_slot(tx, consumer, session, standing)
    asked = _asked(consumer, session, standing.position, now_at, 1)
    if tx.events.queries.rows("session_until", asked):
        raise Moved


def hold_slot(tx: Any, consumer: Consumer, session: Session, standing: Standing) -> int:
    """Hold a session's slot until the commit; where it stands, or Moved if an event has changed."""
    queries, slot = tx.events.queries, (consumer.name, session.slot)
    now_at = int(queries.value("slot", slot))
    if queries.row("slot_of", slot)[1:] != (standing.marks + 1, standing.archives):
        raise Moved
    return now_at


def clear(applying: Applying, consumer: Consumer, session: Session) -> None:
    """Throw away what a consumer derived from a session; one that cannot goes on from its mark."""
    if consumer.reset is not None:
        consumer.reset(applying, session)
        applying.series.reset(session)


async def _given_up(app: "Penstock", consumer: Consumer, session: Session) -> dict[int, str]:
    """The events of a session that have dead letters, and why."""
    whose = (consumer.name, *session.key)
    rows = await app.read(lambda tx: tx.events.queries.rows("given_up", whose))
    return {int(sequence): str(reason) for sequence, reason in rows}


async def _prepared(app: "Penstock", consumer: Consumer, events: list[Event]) -> Any:
    prepared, left_out = await prepared_with(app, consumer, events)
    if left_out:
        raise NotEnriched(consumer.name, left_out)
    return prepared


async def _begin(app: "Penstock", consumer: Consumer, session: Session) -> int:
    """The sequence to begin after: a consumer that cannot reset has what came before a mark."""
    if consumer.reset is not None:
        return 0
    known_by = (consumer.name, *session.key)
    found = await app.read(lambda tx: tx.events.queries.row("mark_of", known_by))
    if found is None:
        raise CannotRebuild(consumer.name)
    return int(found[1]) - 1


async def _pages(
    app: "Penstock", consumer: Consumer, session: Session, after: int, until: int
) -> AsyncIterator[list[Event]]:
    while page := await app.events.ask(
        "session_until", _asked(consumer, session, after, until, PAGE)
    ):
        yield page
        after = page[-1].sequence


async def _sessions(app: "Penstock") -> AsyncIterator[Session]:
    """All sessions of the log, then those that are wholly archived."""
    archived = {session async for session in archive.sessions(app)}
    after = ("", "", "")
    while True:
        rows = await app.read(partial(_some_sessions, after=after))
        for session_id, platform, tenant_id in rows:
            session = Session(tenant_id, platform, session_id)
            archived.discard(session)
            yield session
        if len(rows) < SESSIONS:
            break
        after = rows[-1]
    for session in archived:
        yield session


def _some_sessions(tx: Any, after: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = tx.events.queries.rows("sessions_after", (*after, SESSIONS))
    return found


def _asked(
    consumer: Consumer, session: Session, after: int, until: int, limit: int
) -> dict[str, Any]:
    return {
        "tenant_id": session.tenant_id,
        "platform": session.platform,
        "session_id": session.session_id,
        "types": consumer.listed,
        "after": after,
        "until": until,
        "limit": limit,
    }
