"""The log: events are appended in one commit, each once, and read by sequence."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from penstock.app.gates import known
from penstock.app.transact import Unit
from penstock.events.codec import Codec, UnknownDictionary, unpacked
from penstock.events.codec import learn as learn_dictionary
from penstock.events.counting import Counters, give_back, take
from penstock.events.event import (
    Body,
    Event,
    EventFields,
    EventNotFound,
    InvalidEvent,
    NewEvent,
    Session,
)
from penstock.events.prepare import Preparer, Row
from penstock.extension import load
from penstock.model.clock import LATEST
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.model.store_errors import StoreError
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.archive import Archived, Show
    from penstock.events.background import Background
    from penstock.events.dead import DeadEvents
    from penstock.events.extension import EventSettings
    from penstock.events.late import Looked
    from penstock.events.pipeline import Pipeline, Rates
    from penstock.events.query import Answer
    from penstock.events.series import Recording
    from penstock.events.spool import Intake
    from penstock.events.stream import Stream
    from penstock.extension import Queries
    from penstock.operate.erase import Erased


class Appended(Struct, frozen=True):
    """An event's id, its place in the log, and whether it is new there.

    One that waits in the stream or the spool has no place yet: its sequence is 0.
    """

    event_id: str
    sequence: int
    created: bool


class ErasedMeanwhile(Exception):
    """There was an erasure since events were read that are to be written; so many there were."""

    def __init__(self, happened: int) -> None:
        self.happened = happened


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


class Narrowed(TypedDict, total=False):
    """What a query looks at: events of these times, `until` not included, and of a tenant."""

    since: int
    until: int
    tenant: str | None
    limit: int


class Writing:
    """`tx.events`: what a unit of work does with the log."""

    def __init__(self, queries: "Queries", app: "Penstock", unit: Unit) -> None:
        self.queries = queries
        self.now = unit.now
        self._app = app
        self._unit = unit

    def append(self, event: str | NewEvent, /, **fields: Unpack[EventFields]) -> Appended:
        """Append an event in this commit; one that is there already changes nothing."""
        return self.append_many([made(event, fields)])[0]

    def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events in this commit, in their order."""
        preparer = self._app.events.preparer
        rows = preparer.rows(events, self.now)
        counters = self._app.events.counters
        if counters:
            take(counters, events)
            Unit.undo_by(self._unit, partial(give_back, counters, events))
        for platform in {row.platform for row in rows}:
            self.keep_dictionary(platform)
        return self.write(rows)

    def append_own(self, event: NewEvent) -> None:
        """Append an event of Penstock's own, which holds nothing that a gate would look for."""
        self.keep_dictionary(event.platform)
        self.write([self._app.events.preparer.row(event, self.now, own=True)])

    def keep_dictionary(self, platform: str) -> None:
        """Have the log hold what bodies of a platform are compressed with."""
        found = self._app.events.preparer.dictionary(platform)
        if found is not None:
            number, data = found
            self.queries.run("keep_dictionary", (number, platform, data))

    def hold(self) -> None:
        """Keep everybody else from writing the log until the commit."""
        self.queries.row("hold")

    def hold_unless_erased(self, erasures: int) -> None:
        """The same, unless there was an erasure since there had been so many."""
        self.hold()
        happened = int(self.queries.value("erasures"))
        if happened != erasures:
            raise ErasedMeanwhile(happened)

    def write(
        self,
        rows: Sequence[Row],
        looked: "Looked | None" = None,
        *,
        erasures: int | None = None,
    ) -> list[Appended]:
        """Write what was made ready; unless one has `looked` into the archive, that is done first.

        What was read somewhere when there had been so many `erasures` is refused if there was one
        since.
        """
        self.hold()
        before, archived_until, happened = self.queries.row("begin") or (0, None, 0)
        if erasures is not None and happened != erasures:
            raise ErasedMeanwhile(int(happened))
        late = [row for row in rows if archived_until and row.timestamp <= archived_until]
        archived = self._archived(late, looked) if late else {}
        fresh = [row for row in rows if row not in archived] if archived else rows
        created = self.queries.many("append", [row.bindings for row in fresh])
        if created == len(rows):
            return [Appended(row.event_id, before + n, True) for n, row in enumerate(rows, 1)]
        seen: set[tuple[str, int, str]] = set()
        appended: list[Appended] = []
        for row in rows:
            found = archived.get(row) or self._known(row, int(before))
            appended.append(replace(found, created=False) if row.key in seen else found)
            seen.add(row.key)
        return appended

    def _archived(self, late: Sequence[Row], looked: "Looked | None") -> dict[Row, Appended]:
        """Those of some events that came before and left the log for the archive."""
        from penstock.events import late as archived

        if looked is None:
            found_out = Unit.found_out(self._unit)
            looks = found_out.setdefault("events.archive", archived.Looks(self._app))
            known = looks.known(self.queries, late)
        else:
            known = archived.known(self.queries, late, looked)
        return {row: self._same(row, *known[row.key]) for row in late if row.key in known}

    def _known(self, row: Row, before: int) -> Appended:
        """Where an event is, which was written just now or long ago."""
        found = self.queries.row("known", row.key)
        if found is None:
            raise InvalidEvent(row.event_id, "was removed while it was appended; append it again")
        appended = self._same(row, *found)
        return Appended(row.event_id, appended.sequence, appended.sequence > before)

    def _same(self, row: Row, sequence: int, codec: str, data: bytes, *about: str) -> Appended:
        """An event that is there; another one under its id is refused."""
        body = self._body(codec, data)
        differs = (body, *about) != (row.body, *row.about)
        if differs and codec != Codec.ERASED and not _decoder.decode(body).redacted:
            problem = "is in the log with another content; give this one an id of its own"
            raise InvalidEvent(row.event_id, problem)
        return Appended(row.event_id, int(sequence), False)

    def _body(self, codec: str, data: bytes) -> bytes:
        try:
            return unpacked(data, codec)
        except UnknownDictionary as unknown:
            learn(self.queries, unknown.number)
            return unpacked(data, codec)

    @property
    def series(self) -> "Recording":
        """Figures that are part of this commit."""
        return self.recording()

    def recording(self, consumer: str = "") -> "Recording":
        """The same for a consumer, whose figures go when it makes a session anew."""
        from penstock.events.series import Recording

        return Recording(self.queries, self._app.series, self.now, consumer)


class Events:
    """`app.events`: append, and read what was appended."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._settings: EventSettings = app.extensions.settings("events")
        self._preparer: Preparer | None = None
        self._kept: set[str] = set()
        """The platforms whose dictionaries the log is known to hold."""

    @cached_property
    def dead(self) -> "DeadEvents":
        """What was given up: list it, replay it, drop it."""
        from penstock.events.dead import DeadEvents

        return DeadEvents(self._app)

    @cached_property
    def pipeline(self) -> "Pipeline":
        """What comes in and how far consumers have come; pause, resume and rebuild them."""
        from penstock.events.pipeline import Pipeline

        return Pipeline(self._app)

    @cached_property
    def background(self) -> "Background":
        """Long work that the server was asked for, and how far it is."""
        from penstock.events.background import Background

        return Background(self._app)

    @cached_property
    def rates(self) -> "Rates":
        """What consumers got done between two looks at the pipeline."""
        from penstock.events.pipeline import Rates

        return Rates()

    @property
    def preparer(self) -> Preparer:
        """Makes rows of events, as the settings say."""
        if self._preparer is None:
            self._preparer = Preparer(self._app)
        return self._preparer

    async def append(self, event: str | NewEvent, /, **fields: Unpack[EventFields]) -> Appended:
        """Append an event: `append("tool_use", session_id="s1", payload={…})`.

        It is in the log, on disk, when this returns; or in the stream, if there is one before it.
        """
        return (await self.append_many([made(event, fields)]))[0]

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events in one commit, all of them or, if one is refused, none."""
        if not events:
            return []
        counters = self.counters
        if not counters:
            return await self._append(events)
        await known(lambda: take(counters, events))
        try:
            appended = await self._append(events)
        except Exception:
            give_back(counters, events)
            raise
        there = [event for event, each in zip(events, appended, strict=True) if not each.created]
        give_back(counters, there)
        return appended

    async def _append(self, events: Sequence[NewEvent]) -> list[Appended]:
        now = self._app.store.clock.now()
        if self.intake is None:
            return await self.write(self.preparer.rows(events, now))
        clean = [self.preparer.clean(event, now) for event in events]
        appended = await self.intake.accept(clean)
        return appended or [Appended(event.event_id, 0, True) for event in clean]

    @cached_property
    def counters(self) -> Counters:
        """What counts events that come in: `adds={"events.counter": …}` of extensions."""
        named = [(each.name, each.adds.get("events.counter")) for each in self._app.extensions]
        return [(name, load(counter)(self._app)) for name, counter in named if counter]

    @cached_property
    def stream(self) -> "Stream | None":
        """The stream in front of the log, if the settings name one."""
        url = self._settings.stream
        if not url:
            return None
        try:
            from penstock.events.stream import Stream
        except ModuleNotFoundError as error:
            raise MissingExtra("redis", error.name or "redis") from error
        return Stream(url, allow_volatile=self._app.settings.allow_volatile)

    @cached_property
    def intake(self) -> "Intake[Appended] | None":
        """What spools events while the stream, or the log if a spool was named, is away."""
        named, stream = self._settings.spool, self._settings.stream
        if not (named or stream):
            return None
        from penstock.events.spool import Intake, Spool, usual_place

        told = self._app.settings
        stores = [told.url, told.tables or ""]
        path = Path(named).expanduser().absolute() if named else usual_place(stores, stream or "")
        return Intake(Spool(path), self._deliver, self._refuse)

    async def close(self) -> None:
        """Stop what was asked for, and let go of the stream; what is spooled stays."""
        for used in ("background", "intake", "stream"):
            if self.__dict__.get(used) is not None:
                await self.__dict__[used].close()

    async def _deliver(self, events: Sequence[NewEvent]) -> list[Appended]:
        now = self._app.store.clock.now()
        if self.stream is None:
            return await self.write(self.preparer.rows(events, now))
        await self.stream.add(events, now)
        return [Appended(event.event_id, 0, True) for event in events]

    async def _refuse(self, event: NewEvent, error: InvalidEvent) -> None:
        from penstock.events.letters import bury, letter_of_event

        await bury(self._app, [letter_of_event(event, error, self._app.store.clock.now())])

    async def write(self, rows: Sequence[Row], *, erasures: int | None = None) -> list[Appended]:
        """Write what was made ready, in one commit; ErasedMeanwhile if it has to be read again."""
        from penstock.events.late import Looked, LookFirst, look

        if "events" not in self._app.made_tables:
            self._kept.clear()  # the store was opened anew, and may be another one
        lacking = {row.platform for row in rows} - self._kept
        looked = Looked([], {})

        def work(tx: Any) -> list[Appended]:
            for platform in lacking:
                tx.events.keep_dictionary(platform)
            written: list[Appended] = tx.events.write(rows, looked, erasures=erasures)
            return written

        appended: list[Appended] | None = None
        try:
            while appended is None:
                try:
                    appended = await self._app.transact(work)
                except LookFirst as late:
                    looked = await look(self._app, late.files, rows)
        except StoreError:
            self._app.series.record("events.write_errors")
            raise
        self._kept |= lacking
        return appended

    async def get(self, event_id: str, *, tenant: str | None = None) -> Event:
        """An event by its id."""
        asked = {"event_id": event_id, "tenant": tenant}
        found = await self.ask("by_id", asked)
        if not found:
            raise EventNotFound(event_id)
        return found[0]

    async def find(self, where: EventFilter = EVERY) -> list[Event]:
        """Events of the log, the oldest first."""
        if not 1 <= where.limit <= 10_000:
            raise InvalidOption("limit", where.limit, "1 to 10,000")
        return await self.ask(*_query(where))

    async def latest(self) -> int:
        """The sequence of the last event, which everything before it has been committed with."""
        return int(await self._app.read(lambda tx: tx.events.queries.value("latest")))

    async def erase(self, session: Session, *, actor: Actor = PROGRAM) -> "Erased":
        """Erase all that there is of a session, whatever was derived from it included."""
        erased: Erased = await load("penstock.events.erase:erase_session")(
            self._app, session, actor=actor
        )
        return erased

    async def archive(self, before: int | None = None) -> "list[Archived]":
        """Move the whole months before a time to files of the archive, which are then returned."""
        made: list[Archived] = await load("penstock.events.archive:archive")(self._app, before)
        return made

    async def archive_jobs(
        self, before: int | None = None, *, show: "Show | None" = None
    ) -> "list[Archived]":
        """Move jobs that ended in the whole months before a time to files of the archive."""
        made: list[Archived] = await load("penstock.events.job_archive:archive_jobs")(
            self._app, before, show=show
        )
        return made

    async def query(self, sql: str, **narrowed: Unpack[Narrowed]) -> "Answer":
        """Answer a SELECT over the view `events`, those of the archive included."""
        answer: Answer = await load("penstock.events.query:query")(self._app, sql, **narrowed)
        return answer

    async def ask(self, name: str, asked: dict[str, Any]) -> list[Event]:
        """The events that a named query finds."""
        rows = await self._app.read(lambda tx: tx.events.queries.rows(name, asked))
        return await self.decoded(rows)

    async def decoded(self, rows: Sequence[tuple[Any, ...]]) -> list[Event]:
        """Rows of the log as events."""
        try:
            return [_event(row) for row in rows]
        except UnknownDictionary as unknown:
            number = unknown.number
            await self._app.read(lambda tx: learn(tx.events.queries, number))
            return await self.decoded(rows)


def learn(queries: "Queries", number: int) -> None:
    """Take in a dictionary that the log holds."""
    data = queries.value("dictionary", (number,))
    if data is None:
        raise InvalidOption("dictionary", number, "one that the table events_dictionaries holds")
    learn_dictionary(number, bytes(data))


def made(event: str | NewEvent, fields: EventFields) -> NewEvent:
    """An event as `append` takes it."""
    if isinstance(event, NewEvent):
        if fields:
            raise InvalidOption("fields", sorted(fields), "those of a NewEvent, which was given")
        return event
    try:
        return msgspec.convert({"event_type": event, **fields}, NewEvent)
    except msgspec.ValidationError as error:
        raise InvalidEvent(str(fields.get("event_id", "")), f"does not fit: {error}") from error


def _query(where: EventFilter) -> tuple[str, dict[str, Any]]:
    asked = msgspec.structs.asdict(where)
    if where.session_id is not None:
        return "of_session", asked
    if where.since is None and where.until is None:
        return "of_tenant" if where.tenant else "every", asked
    until = LATEST + 1 if where.until is None else where.until
    return "within", {**asked, "since": where.since or 0, "until": until}


def _event(row: tuple[Any, ...]) -> Event:
    *columns, codec, data = row
    body = _decoder.decode(unpacked(data, codec))
    return Event(
        **dict(zip(_COLUMNS, columns, strict=True)),
        hook_type=body.hook_type,
        payload=body.payload,
        metadata=body.metadata,
    )


_decoder = msgspec.json.Decoder(Body)
_COLUMNS = Event.__struct_fields__[:11]
