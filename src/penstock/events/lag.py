"""How far behind consumers are: how many events wait for each, and since when."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.events.consumer import Role
from penstock.events.feed import MEMBER_MS, Mark

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Queries

WINDOWS = 8
WINDOW = 512
"""Of more sequences than these windows hold, those in evenly spread windows are counted."""


GONE_MS = 86_400_000


class Declared(Struct, frozen=True):
    """A consumer as the store knows it: how it was declared, and what it is told to do now."""

    name: str
    role: str
    types: str | None
    partitions: int
    starts: int
    minimum: int
    maximum: int
    own_batch: int
    own_timeout_ms: int
    sized: int
    paused: int
    held: int
    run_at: int
    resumes: int
    workers: int
    batch: int
    timeout_ms: int
    enriches: int
    sheds_from: int | None


class Lag(Struct, frozen=True, kw_only=True):
    """How far behind a consumer is, and what it does about it; times are milliseconds.

    `depth` are the events that wait, an estimate where there are thousands. What was put off does
    not wait: its sessions are `behind`. `wanted` are the workers it should have, and `workers`
    those that run; it is `gone` if there were none for a day, as its code may be. It is `paused` by
    an operator, or `held` under pressure; after that it `resumes`, and what has gathered meanwhile
    does not count for the level.
    """

    consumer: str
    role: Role
    depth: int
    lag_ms: int
    paused: bool
    held: bool
    gone: bool
    resumes: bool
    workers: int
    wanted: int
    batch: int
    timeout_ms: int
    enriches: bool
    sheds_from: int | None
    behind: int
    unenriched: int
    incomplete: int
    waiting: int

    @property
    def state(self) -> str:
        """What it does: 'runs', 'paused', 'resumes', 'sheds' or 'gone'; only the first counts."""
        if self.gone:
            return "gone"
        if self.paused or self.held:
            return "paused"
        if self.resumes:
            return "resumes"
        return "runs" if self.sheds_from is None else "sheds"


async def lags(app: "Penstock") -> list[Lag]:
    """How far behind every consumer is that the store knows, by name."""
    return await app.read(measured)


def measured(tx: Any) -> list[Lag]:
    """The same within a transaction."""
    queries, now = tx.events.queries, tx.now
    head = int(queries.value("latest"))
    running = {
        name: int(count) for name, count in queries.rows("running_workers", (now - MEMBER_MS,))
    }
    marked = {
        (str(consumer), str(mark)): int(count)
        for consumer, mark, count in queries.rows("count_marked")
    }
    return [
        _lag(queries, each, head, now, running.get(each.name, 0), marked)
        for each in declared(queries)
    ]


def declared(queries: "Queries") -> list[Declared]:
    """All consumers that the store knows."""
    return [Declared(*row) for row in queries.rows("consumers")]


def _lag(
    queries: "Queries",
    consumer: Declared,
    head: int,
    now: int,
    running: int,
    marked: Mapping[tuple[str, str], int],
) -> Lag:
    depth, since = waiting(queries, consumer, head)
    marks = {mark: marked.get((consumer.name, mark.value), 0) for mark in Mark}
    return Lag(
        consumer=consumer.name,
        role=Role(consumer.role),
        depth=depth,
        lag_ms=0 if since is None else max(0, now - since),
        paused=bool(consumer.paused),
        held=bool(consumer.held),
        gone=not running and now - consumer.run_at > GONE_MS,
        resumes=bool(consumer.resumes),
        workers=running,
        wanted=consumer.workers,
        batch=consumer.batch,
        timeout_ms=consumer.timeout_ms,
        enriches=bool(consumer.enriches),
        sheds_from=consumer.sheds_from,
        behind=marks[Mark.BEHIND],
        unenriched=marks[Mark.UNENRICHED],
        incomplete=marks[Mark.INCOMPLETE],
        waiting=marks[Mark.WAITING],
    )


def waiting(queries: "Queries", consumer: Declared, head: int) -> tuple[int, int | None]:
    """How many events wait for a consumer, and since when the first does.

    At most a few thousand rows are read for it, however far behind the consumer is.
    """
    least = int(queries.value("least_position", (consumer.name,)))
    span = head - least
    if span <= 0:
        return 0, None
    sampled = span > WINDOWS * WINDOW
    begins = [least + n * span // WINDOWS for n in range(WINDOWS)] if sampled else [least]
    size = WINDOW if sampled else span
    found = [
        queries.row(
            "waiting_between",
            {
                "consumer": consumer.name,
                "types": consumer.types,
                "after": after,
                "until": min(after + size, head),
            },
        )
        or (0, 0)
        for after in begins
    ]
    count = sum(int(number) for number, _ in found)
    since = next((int(at) for number, at in found if number), None)
    if not sampled:
        return count, since
    if since is None:
        # What it sees is rare: it is at most as far behind as the first event of any type.
        first = queries.row("next_sequence", (least,))
        since = None if first is None else int(first[1])
    return round(count * span / (WINDOWS * WINDOW)), since
