"""The feed: what the log holds for a consumer beyond its cursors, and who may move them."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.events.columns import SLOTS
from penstock.events.consumer import Consumer
from penstock.events.event import Event, Session
from penstock.model.ids import new_id

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

AHEAD = 50_000
"""So far a fetch looks at once: what a consumer wants may be rare."""
LEASE_MS = 10_000
"""Slots of a worker that was not heard of for so long are taken over."""
MEMBER_MS = 5_000
"""A process that was not heard of for so long gets no share."""


class Mark(StrEnum):
    """What is known of a session that is not as the log says."""

    INCOMPLETE = "incomplete"
    """An event of it was given up; what follows is applied."""
    WAITING = "waiting"
    """An event of it was given up; what follows waits until it is replayed."""
    BEHIND = "behind"
    """Events of it were put off under pressure; it is made anew when that is over."""
    UNENRICHED = "unenriched"
    """It was applied without an enrichment; it is made anew when the pressure is over."""


PUT_OFF = frozenset({Mark.WAITING, Mark.BEHIND})


class SlotsLost(Exception):
    """Somebody else holds the slots now; nothing was done."""


class MarksChanged(Exception):
    """A session was made anew meanwhile, so that what was fetched has to be looked at again."""


class Control(Struct, frozen=True):
    """What a consumer does now: an operator may have paused it, or the pressure changed it."""

    paused: int
    workers: int
    batch: int
    timeout_ms: int
    enriches: int
    sheds_from: int | None


class Lane(Struct, kw_only=True):
    """Slots side by side that have come equally far, and that one worker moves together."""

    first: int
    last: int
    position: int
    marks: int = 0

    @property
    def size(self) -> int:
        """How many slots it has."""
        return self.last - self.first + 1


class Fetched(Struct, frozen=True):
    """What waits in a lane, and what is known of its sessions."""

    head: int
    events: list[Event]
    marked: dict[Session, Mark]
    marks: int
    control: Control


class Putting(Struct, frozen=True):
    """A session that is marked in the commit which passes an event of it."""

    session: Session
    mark: Mark
    reason: str
    sequence: int


async def declare(app: "Penstock", consumer: Consumer) -> None:
    """Have the store know a consumer; a new one begins with the first event of the log."""

    def work(tx: Any) -> None:
        queries = tx.events.queries
        declared = {
            "name": consumer.name,
            "role": consumer.role.value,
            "now": tx.now,
            "types": consumer.listed,
            "partitions": consumer.partitions,
            "workers": consumer.workers,
            "minimum": consumer.minimum,
            "maximum": consumer.maximum,
            "batch": consumer.batch,
            "timeout_ms": round(consumer.timeout * 1000),
        }
        queries.run("declare_consumer", declared)
        if queries.value("count_slots", (consumer.name,)) != SLOTS:
            queries.many("open_slots", [(consumer.name, slot, 0) for slot in range(SLOTS)])

    await app.transact(work)


async def fetch(app: "Penstock", consumer: Consumer, lane: Lane) -> Fetched:
    """Read a batch of a lane, up to an event before which everything has been committed."""

    def question(tx: Any) -> tuple[int, Control, list[Any], list[Any], int]:
        queries = tx.events.queries
        control = Control(*queries.row("control", (consumer.name,)))
        head = min(int(queries.value("latest")), lane.position + AHEAD)
        if control.paused or head == lane.position:
            return head, control, [], [], lane.marks
        asked = {
            "after": lane.position,
            "head": head,
            "first": lane.first,
            "last": lane.last,
            "types": consumer.listed,
            "limit": control.batch,
        }
        rows = queries.rows("feed", asked)
        slots = (consumer.name, lane.first, lane.last)
        marked = queries.rows("marks", slots) if rows else []
        return head, control, rows, marked, int(queries.value("count_marks", slots))

    head, control, rows, marked, marks = await app.read(question)
    return Fetched(
        head,
        await app.events.decoded(rows),
        {Session(*session): Mark(mark) for *session, mark in marked},
        marks,
        control,
    )


def move(
    tx: Any, consumer: Consumer, owner: str, lane: Lane, to: int, put_off: Sequence[Putting] = ()
) -> None:
    """Move the cursors of a lane in a commit; SlotsLost or MarksChanged if that may not be."""
    asked = {
        "consumer": consumer.name,
        "first": lane.first,
        "last": lane.last,
        "owner": owner,
        "position": lane.position,
        "to": to,
        "until": tx.now + LEASE_MS,
    }
    found = tx.events.queries.rows("move_slots", asked)
    if len(found) != lane.size:
        raise SlotsLost
    if sum(int(marks) for (marks,) in found) != lane.marks:
        raise MarksChanged
    for each in put_off:
        put_mark(tx, consumer.name, each)


def put_mark(tx: Any, consumer: str, putting: Putting) -> None:
    """Mark a session; the first event that is missing stays the first."""
    session = putting.session
    known_by = (consumer, session.tenant_id, session.platform, session.session_id)
    told = (session.slot, putting.mark.value, putting.reason, putting.sequence, tx.now)
    tx.events.queries.run("mark", (*known_by, *told))


def buried(consumer: Consumer, event: Event, reason: str, now: int) -> tuple[Any, ...]:
    """The dead letter of an event that is in the log."""
    known_by = (event.event_id, event.event_type, event.platform, event.session_id)
    whose = (event.tenant_id, event.person)
    failed = (reason, consumer.tries, 0, "", now, None)
    return (new_id(), consumer.name, event.sequence, *known_by, *whose, *failed)


async def claim(
    app: "Penstock", consumer: Consumer, owner: str, first: int, last: int
) -> list[Lane]:
    """Take those of some slots that nobody holds."""

    def work(tx: Any) -> list[tuple[int, int, int]]:
        asked = {
            "consumer": consumer.name,
            "first": first,
            "last": last,
            "owner": owner,
            "now": tx.now,
            "until": tx.now + LEASE_MS,
        }
        return sorted(tx.events.queries.rows("claim_slots", asked))

    rows = await app.transact(work)
    return merged(
        [
            Lane(first=slot, last=slot, position=position, marks=marks)
            for slot, position, marks in rows
        ]
    )


async def renew(app: "Penstock", consumer: Consumer, owner: str) -> None:
    """Tell that a worker is alive which has nothing to move."""
    name = consumer.name

    def work(tx: Any) -> None:
        asked = {"consumer": name, "owner": owner, "until": tx.now + LEASE_MS}
        tx.events.queries.run("renew_slots", asked)

    await app.transact(work)


async def release(app: "Penstock", consumer: Consumer, owner: str, lanes: Sequence[Lane]) -> None:
    """Give slots back, so that others take them at once."""

    def work(tx: Any) -> None:
        for lane in lanes:
            asked = {"first": lane.first, "last": lane.last, "owner": owner}
            tx.events.queries.run("release_slots", {"consumer": consumer.name, **asked})

    await app.transact(work)


def merged(lanes: Sequence[Lane]) -> list[Lane]:
    """Lanes side by side that have come equally far, as one."""
    found: list[Lane] = []
    for lane in sorted(lanes, key=lambda lane: lane.first):
        before = found[-1] if found else None
        if before and before.last + 1 == lane.first and before.position == lane.position:
            before.last, before.marks = lane.last, before.marks + lane.marks
        else:
            found.append(lane)
    return found


def shares(partitions: int, workers: int, members: int, rank: int) -> list[tuple[int, int]]:
    """The slots, first and last, of each worker that one of several members has.

    Workers are dealt out to the members in turn; partitions go to workers in runs.
    """
    count = min(workers, partitions)
    if not count:
        return []
    edges = [partition * SLOTS // partitions for partition in range(partitions + 1)]
    bounds = [edges[worker * partitions // count] for worker in range(count + 1)]
    runs = [(first, beyond - 1) for first, beyond in pairwise(bounds)]
    return runs[rank::members]
