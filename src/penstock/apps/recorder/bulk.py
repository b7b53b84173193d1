"""Many captured events at once, made ready by whoever has time, and written with their place.

How far a file was read stands in the commit of what was read: whatever ends it, it goes on there.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.json import encode

from penstock.app.transact import table_store
from penstock.apps.recorder.captured import Captured, message_rows, redaction_rows
from penstock.apps.recorder.writing import event_of, validation
from penstock.events.prepare import Preparer, Row
from penstock.model.errors import QueueFull

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


class Ready(NamedTuple):
    """An event that is made safe and ready to be written."""

    row: Row
    messages: list[dict[str, Any]]
    redactions: list[tuple[Any, ...]]


class Position(NamedTuple):
    """How far a file was read: what it is known by, its kind, where, which file, and the time."""

    id: str
    kind: str
    position: int
    mark: str
    at: int


class Kept(NamedTuple):
    """How many events and messages are new, and how many of these wait without a job."""

    events: int
    messages: int
    unvalidated: int = 0


def ready(captured: Sequence[Captured], preparer: Preparer, now: int) -> list[Ready]:
    """What was captured, checked and compressed."""
    # What our own gate would do was done; another one has its say.
    own = preparer.gate.__module__.startswith("penstock.apps.recorder")
    return [
        Ready(preparer.row(event_of(one), now, own=own), message_rows(one), redaction_rows(one))
        for one in captured
    ]


async def position_of(app: "Penstock", id_: str) -> Position | None:
    """How far a file was read."""
    row = await app.read(lambda tx: tx.recorder.row("position", (id_,)))
    return None if row is None else Position(*row)


async def keep(
    app: "Penstock", events: Sequence[Ready], position: Position, spoken: Counter[str]
) -> Kept:
    """Write events that are new with their messages and jobs, and how far a file was read.

    Messages that were `spoken` before, by their hashes, are not written once more, and taken off
    from it. If the queue is full, they wait without a job.
    """
    left = Counter[str]()
    indexes = table_store(app, "The recorder").dialect == "sqlite"

    def work(tx: Any, *, validate: bool) -> Kept:
        left.clear()
        left.update(spoken)
        new = _new(tx, events)
        rows = [row for event in new for row in event.messages if not _is_spoken(row, left)]
        _add_messages(tx, rows, indexes=indexes)
        tx.recorder.many("add_redaction", [row for event in new for row in event.redactions])
        # One job looks at all that waits of a conversation.
        firsts = {row["conversation_id"]: row for row in reversed(rows)}
        jobs = list(validation(app, list(firsts.values()))) if validate else []
        if jobs:
            tx.enqueue_many(jobs)
        tx.recorder.run("keep_position", (*position, tx.now))
        return Kept(len(new), len(rows), 0 if validate else len(rows))

    try:
        kept = await app.transact(lambda tx: work(tx, validate=True))
    except QueueFull:
        kept = await app.transact(lambda tx: work(tx, validate=False))
    spoken.clear()
    spoken.update(left)
    return kept


def _add_messages(tx: Any, rows: Sequence[dict[str, Any]], *, indexes: bool) -> None:
    """Write messages of events that were appended in this commit, which keeps others out.

    If it `indexes`, the words of all of them are indexed by one statement.
    """
    last: dict[str, int] = {}
    numbered = []
    for row in rows:
        conversation = row["conversation_id"]
        if conversation not in last:
            last[conversation] = int(tx.recorder.value("last_sequence", (conversation,)))
        last[conversation] += 1
        row["sequence"] = last[conversation]
        numbered.append(tuple(row[column] for column in COLUMNS))
    if not indexes:
        tx.recorder.many("add_numbered", numbered)
        return
    tx.recorder.run("index_later")
    tx.recorder.many("add_numbered", numbered)
    tx.recorder.run("index_now")
    tx.recorder.run("index_at_once")


COLUMNS = (
    *("id", "tenant_id", "person", "conversation_id", "platform", "session_id", "event_id"),
    *("role", "content", "content_hash", "sequence", "created_at", "token_count", "metadata"),
)


def _new(tx: Any, events: Sequence[Ready]) -> list[Ready]:
    """Append those events that the log does not have, at whatever time, and return them."""
    log = tx.events  # its tables are made by whoever asks first
    new: dict[tuple[str, str], Ready] = {}
    ids = encode([event.row.event_id for event in events]).decode()
    known = {(str(id_), str(tenant)) for id_, tenant in tx.recorder.rows("captured_among", (ids,))}
    for event in events:
        event_id, _, tenant = event.row.key
        if (event_id, tenant) not in known:
            new.setdefault((event_id, tenant), event)
    for platform in sorted({event.row.platform for event in new.values()}):
        log.keep_dictionary(platform)
    if new:
        log.write([event.row for event in new.values()])
    return list(new.values())


def _is_spoken(row: dict[str, Any], left: Counter[str]) -> bool:
    if left[row["content_hash"]] <= 0:
        return False
    left[row["content_hash"]] -= 1
    return True
