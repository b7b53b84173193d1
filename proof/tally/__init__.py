"""A consumer that keeps a row for every session, to prove what is promised to all of them.

Of each session it keeps how many events there were, the sum of their amounts and a chain over their
ids, which tells whether they came in their order and each exactly once.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from penstock.events.consumer import Consumer, consumer_of
from penstock.events.event import Event, Session
from penstock.extension import Extension, Table, Tables

TABLES = Tables("tally", "proof.tally", (Table("tally_sessions", key=("name", "session")),))
tally = Extension(name="tally", tables=TABLES)


class Tally:
    """Keeps the rows of one consumer: event by event, or what a batch `folds` into at once.

    To PostgreSQL, a row that is written ten thousand times in one transaction is ten thousand rows.
    """

    def __init__(self, name: str = "tally", *, folds: bool = False) -> None:
        self.name = name
        self._folds = folds
        self.poison: set[str] = set()
        """The ids of events that it cannot apply."""
        self.prepared: list[int] = []
        """The sizes of the batches it was given."""

    def prepare(self, events: Sequence[Event]) -> Sequence[Event]:
        """Count the batch."""
        self.prepared.append(len(events))
        return events

    def apply(self, tx: Any, events: Sequence[Event]) -> None:
        """Add every event to the row of its session."""
        for event in events:
            if event.event_id in self.poison:
                raise ValueError(f"cannot apply {event.event_id}")
        if self._folds:
            before = {
                session: tx.tally.row("row", (self.name, session)) or NOTHING
                for session in {name_of(event.session) for event in events}
            }
            for session, row in folded(events, before).items():
                tx.tally.run("put", (self.name, session, *row))
            return
        for event in events:
            session = name_of(event.session)
            row = tx.tally.row("row", (self.name, session)) or NOTHING
            tx.tally.run("put", (self.name, session, *added(row, event)))

    def reset(self, tx: Any, session: Session) -> None:
        """Throw the row of a session away."""
        tx.tally.run("drop", (self.name, name_of(session)))

    def consumer(self, **options: Any) -> Consumer:
        """It as a consumer."""
        return consumer_of(self, name=self.name, **options)


def name_of(session: Session) -> str:
    """A session in one word."""
    return "/".join((session.tenant_id, session.platform, session.session_id))


def linked(chain: str, event_id: str) -> str:
    """A chain that goes on with an event."""
    return sha256(f"{chain} {event_id}".encode()).hexdigest()[:16]


Row = tuple[int, int, str]
Totals = dict[str, Row]
NOTHING: Row = (0, 0, "")


async def totals(app: Any, name: str = "tally") -> Totals:
    """What a consumer has derived."""
    rows = await app.read(lambda tx: tx.tally.rows("all", (name,)))
    return {str(session): (int(n), int(amount), str(chain)) for session, n, amount, chain in rows}


def folded(events: Sequence[Event], before: Totals | None = None) -> Totals:
    """What it should have derived, going on from what was there before."""
    found = dict(before or {})
    for event in events:
        session = name_of(event.session)
        found[session] = added(found.get(session, NOTHING), event)
    return found


def added(row: Row, event: Event) -> Row:
    """A row with one more event."""
    n, amount, chain = row
    return n + 1, amount + event.payload.get("amount", 0), linked(chain, event.event_id)
