"""Redaction: a text is taken out of the events of a session, and no rebuild brings it back.

The body of an event is written anew in its place, in the log or in its file of the archive. In the
same commit whoever has fetched it looks again, what was derived from the session is marked to be
made anew, and the event that tells of the redaction is appended. An event that comes again is known
by its id, although its content is another by now.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.events import archive
from penstock.events.codec import Codec
from penstock.events.columns import EXTRACTED
from penstock.events.consumer import Consumer
from penstock.events.erase import derive_anew
from penstock.events.event import Body, NewEvent, Session
from penstock.events.parquet import Row

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.app.transact import Unit

PAGE = 500
REASON = "texts were taken out of it"

Change = Callable[[str], str]
"""Takes out of a text what must not stay in it; of what it has cleaned it changes nothing more."""


class _Changed(Exception):
    """An event was written anew by somebody else since it was read."""


async def redact_session(
    app: "Penstock",
    session: Session,
    change: Change,
    told: Sequence[NewEvent],
    also: "Callable[[Unit], None] | None" = None,
) -> int:
    """Change all texts of a session's events, and make anew what was derived; how many events.

    `told` says in the log what was done. It is appended in the commit that changes the events, in
    which `also(tx)` changes what else holds such texts.
    """
    consumers = await _resettable(app)
    redactor = Redactor(app, session, change, [*consumers])
    while True:
        try:
            count = await redactor.redact(told, also)
            break
        except _Changed:
            continue
    count += await archive.erase(app, redactor) if await archive.files(app) else 0
    _, failed = await derive_anew(app, consumers, REASON)
    if failed is not None:
        raise failed
    return count


async def _resettable(app: "Penstock") -> dict[str, Consumer]:
    """The consumers that have come past events and can make a session anew."""
    rows = await app.read(lambda tx: tx.events.queries.rows("consumer_names"))
    ran = {str(name) for (name,) in rows}
    known: Mapping[str, Consumer] = app.consumer.known()
    return {name: each for name, each in known.items() if name in ran and each.reset is not None}


class Redactor:
    """What one redaction does to the events of a session, wherever they are."""

    def __init__(
        self, app: "Penstock", session: Session, change: Change, consumers: Sequence[str]
    ) -> None:
        self.page = PAGE
        self._app = app
        self._session = session
        self._change = change
        self._consumers = consumers

    async def redact(self, told: Sequence[NewEvent], also: "Callable[[Unit], None] | None") -> int:
        """Change what the log holds, in one commit."""
        rewritten = await self._rewritten()

        def work(tx: Any) -> int:
            tx.events.hold()
            queries = tx.events.queries
            tx.events.keep_dictionary(self._session.platform)
            for bindings in rewritten:
                if not queries.run("rewrite", bindings):
                    raise _Changed
            for letter, reason, document in queries.rows("letter_texts", self._session.key):
                kept = None if document is None else self._change(document)
                queries.run("rewrite_letter", (self._change(reason), kept, letter))
            if also is not None:
                also(tx)
            if told:
                tx.events.append_many(told)
            if rewritten:
                queries.run("give_up_writing")  # a file in the making has what was there before
                self.record(tx, ())
            return len(rewritten)

        return await self._app.transact(work)

    async def _rewritten(self) -> list[tuple[Any, ...]]:
        """What `rewrite` takes for each event of the log that changes."""
        found: list[tuple[Any, ...]] = []
        after = 0
        while rows := await self._rows(after):
            events = await self._app.events.decoded(rows)
            after = events[-1].sequence
            for event, row in zip(events, rows, strict=True):
                body = self._changed(Body(event.payload, event.metadata, event.hook_type))
                if body is not None:
                    columns = self._app.events.preparer.rewritten(body, event.platform)
                    found.append((*columns, event.sequence, event.timestamp, row[-1]))
        return found

    async def _rows(self, after: int) -> list[tuple[Any, ...]]:
        asked = {
            "session_id": self._session.session_id,
            "platform": self._session.platform,
            "tenant": self._session.tenant_id,
            "event_type": None,
            "after": after,
            "limit": PAGE,
        }
        return await self._app.read(lambda tx: tx.events.queries.rows("of_session", asked))

    def _changed(self, body: Body) -> Body | None:
        """A body as it may stay; None if it may as it is."""
        payload, metadata = self._cleaned(body.payload), self._cleaned(body.metadata)
        if (payload, metadata) == (body.payload, body.metadata):
            return None
        return Body(payload, metadata, body.hook_type, redacted=True)

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._change(value)
        if isinstance(value, dict):
            return {self._change(name): self._cleaned(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._cleaned(each) for each in value]
        return value

    def means(self, row: Row) -> bool:
        """Whether an archived event changes."""
        if row["codec"] == Codec.ERASED or self._session != _session_of(row):
            return False
        return self._changed(_decoder.decode(row["body"])) is not None

    def found(self, row: Row) -> str:
        """The id of an archived event."""
        return str(row["event_id"])

    def replace(self, row: Row) -> None:
        """Change an archived event."""
        body = self._changed(_decoder.decode(row["body"]))
        assert body is not None
        columns = self._app.events.preparer.rewritten(body, row["platform"])
        row.update(zip(EXTRACTED, columns, strict=False))
        row["body"] = msgspec.json.encode(body).decode()

    def record(self, tx: Any, rows: Sequence[Any]) -> None:
        """Have whoever knows events of the session look again."""
        queries = tx.events.queries
        queries.run("look_again", (self._session.slot,))
        for name in self._consumers:
            marked = (self._session.slot, REASON, 0, tx.now)
            queries.run("mark_erased", (name, *self._session.key, *marked))


def _session_of(row: Row) -> Session:
    return Session(row["tenant_id"], row["platform"], row["session_id"])


_decoder = msgspec.json.Decoder(Body)
