"""Dead letters of events: what was given up, by ingest or by a consumer, and what becomes of it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.events import archive
from penstock.events.consumer import Applying, Consumer
from penstock.events.event import Event, InvalidEvent, NewEvent, Session
from penstock.events.feed import Mark
from penstock.events.rebuild import Moved, hold_slot, rebuild_session, standing_of
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

INGEST = "ingest"
PAGE = 100
MOST = 1_000
BEYOND = "~"
"""Greater than every id."""

Show = Callable[[int, int], None]
"""Hears how many letters were looked at, and of how many."""


class LetterNotFound(NotFound):
    """An id that no dead letter of an event has."""

    def __init__(self, letter_id: str) -> None:
        self.letter_id = letter_id[:64]
        super().__init__(
            f"There is no dead letter {self.letter_id!r} of an event; see `penstock events dead`."
        )


class DeadEvent(Struct, frozen=True):
    """An event that was given up; `source` is a consumer, or `ingest`.

    One that a consumer gave up is in the log, at `sequence`. Of one that ingest did, `document` is
    what was to be appended, if anybody could read it: else there are only its size and its hash.
    """

    id: str
    source: str
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
    failed_at: int
    document: str | None

    @property
    def session(self) -> Session:
        """Whose it is."""
        return Session(self.tenant_id, self.platform, self.session_id)


class DeadEvents:
    """`app.events.dead`: list them, replay them once their reason is gone, or drop them."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def count(self) -> dict[str, int]:
        """How many there are of each source."""
        rows = await self._app.read(lambda tx: tx.events.queries.rows("count_dead"))
        return {source: int(number) for source, number in rows}

    async def get(self, letter_id: str) -> DeadEvent:
        """One of them, or LetterNotFound."""
        row = await self._app.read(lambda tx: tx.events.queries.row("letter", (letter_id,)))
        if row is None or not self._actor.owns(DeadEvent(*row).tenant_id):
            raise LetterNotFound(letter_id)
        return DeadEvent(*row)

    async def replay(self, letter_id: str, *, enqueue: bool = False) -> int:
        """Try again what was given up; how many events were applied or appended.

        What a consumer derived from the session is made anew, with this event in its place. A
        consumer that cannot reset a session applies the event alone, after what followed it. If it
        fails again, the error is raised and the letter stays. Jobs are enqueued only if told to.
        """
        letter = await self.get(letter_id)
        async with self._doing("replay", letter):
            if letter.source == INGEST:
                return await self._append(letter)
            consumer: Consumer = self._app.consumer.get(letter.source)
            if consumer.reset is not None or await self._mark_of(letter) is Mark.WAITING:
                return await rebuild_session(self._app, consumer, letter.session, enqueue=enqueue)
            return await self._apply(consumer, letter, enqueue=enqueue)

    async def replay_all(
        self, source: str | None = None, *, enqueue: bool = False, show: Show | None = None
    ) -> tuple[int, dict[str, str]]:
        """Replay those of a source, or all; how many are gone, and why others are not.

        A session that is made anew takes all of its letters with it.
        """
        letters = await self._every(source)
        refused: dict[str, str] = {}
        for n, letter in enumerate(letters, 1):
            try:
                await self.replay(letter.id, enqueue=enqueue)
            except LetterNotFound:
                pass
            except Exception as error:
                refused[letter.id] = f"{type(error).__name__}: {error}"
            if show is not None:
                show(n, len(letters))
        return len(letters) - len(refused), refused

    async def drop(self, letter_id: str) -> DeadEvent:
        """Forget a letter; what it is about stays undone, and its session marked as incomplete."""
        letter = await self.get(letter_id)
        if letter.source != INGEST and await self._mark_of(letter) is Mark.WAITING:
            expected = "one of a session that goes on without it: this one waits for its replay"
            raise InvalidOption("letter", letter.id, expected)
        async with self._doing("drop", letter):
            await self._app.transact(lambda tx: _unbury(tx, letter))
        return letter

    def _doing(self, action: str, letter: DeadEvent) -> Any:
        return self._actor.doing(
            f"event.{action}",
            f"event:{letter.event_id or letter.id}",
            tenant_id=letter.tenant_id,
            source=letter.source,
            letter=letter.id,
        )

    async def _every(self, source: str | None) -> list[DeadEvent]:
        found: list[DeadEvent] = []
        before: str | None = None
        while page := await self.list(source, before=before, limit=MOST):
            found += page
            before = page[-1].id
        return found

    async def _mark_of(self, letter: DeadEvent) -> Mark | None:
        session = letter.session
        key = (letter.source, session.tenant_id, session.platform, session.session_id)
        row = await self._app.read(lambda tx: tx.events.queries.row("mark_of", key))
        return None if row is None else Mark(row[0])

    async def _append(self, letter: DeadEvent) -> int:
        if letter.document is None:
            expected = "of which more than its size and its hash was kept"
            raise InvalidOption("letter", letter.id, expected)
        try:
            event = msgspec.json.decode(letter.document, type=NewEvent)
        except msgspec.MsgspecError as error:
            raise InvalidEvent(letter.event_id, f"does not fit: {error}") from error
        rows = self._app.events.preparer.rows([event], self._app.store.clock.now())

        def work(tx: Any) -> None:
            _unbury(tx, letter)
            for row in rows:
                tx.events.keep_dictionary(row.platform)
            tx.events.write(rows)

        await self._app.transact(work)
        return len(rows)

    async def _apply(self, consumer: Consumer, letter: DeadEvent, *, enqueue: bool) -> int:
        """Apply the event alone, once, however often this is asked for."""
        while True:
            try:
                return await self._apply_once(consumer, letter, enqueue=enqueue)
            except Moved:
                continue

    async def _apply_once(self, consumer: Consumer, letter: DeadEvent, *, enqueue: bool) -> int:
        session = letter.session
        standing = await standing_of(self._app, consumer, session)
        events = await self._events_of(letter)
        if not events:
            expected = "one whose event is still in the log or the archive"
            raise InvalidOption("letter", letter.id, expected)
        prepared = await consumer.prepared(events)
        whose = (consumer.name, *session.key)

        def work(tx: Any) -> None:
            queries = tx.events.queries
            hold_slot(tx, consumer, session, standing)
            _unbury(tx, letter)
            consumer.apply(Applying(tx, consumer.name, enqueues=enqueue), prepared)
            if not queries.value("letters_of_session", whose):
                queries.run("unmark", whose)

        await self._app.transact(work)
        return len(events)

    async def _events_of(self, letter: DeadEvent) -> Sequence[Event]:
        """The event of a letter, in the log or, since it may have become old, in the archive."""
        at = letter.sequence or 0
        found: Sequence[Event] = await self._app.events.ask("by_sequence", {"sequence": at})
        return found or await archive.events_of(self._app, letter.session, None, at - 1, at)

    async def list(
        self, source: str | None = None, *, before: str | None = None, limit: int = PAGE
    ) -> list[DeadEvent]:
        """A page of them, the latest first; `before` is the id to go on after."""
        if not 1 <= limit <= MOST:
            raise InvalidOption("limit", limit, f"1 to {MOST:,}")
        asked = {
            "source": source,
            "tenant": self._actor.tenant,
            "before": before or BEYOND,
            "limit": limit,
        }
        rows = await self._app.read(lambda tx: tx.events.queries.rows("dead", asked))
        return [DeadEvent(*row) for row in rows]


def _unbury(tx: Any, letter: DeadEvent) -> None:
    if not tx.events.queries.run("unbury", (letter.id,)):
        raise LetterNotFound(letter.id)
