"""The outbox: rows written in the commit of a unit of work, and the pass that delivers them.

A job's id is that of its row, so that one that is delivered twice is there once. The store of jobs
remembers the id, however soon the job is done and pruned, until a day after its row is gone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from penstock.extension import Command, Concern, Extension, Pass, Table, Tables
from penstock.model.errors import PenstockError
from penstock.model.job import Enqueued, NewJob
from penstock.model.store_errors import StoreUnavailable

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract.jobs import Inbox
    from penstock.store.contract.tables import Queries, TableTransaction

BATCH = 100
LATE_MS = 60_000
TABLES = Tables(
    extension="outbox",
    package="penstock.outbox",
    tables=(Table("outbox_jobs", key=("id",), tenant="tenant_id", person="created_by"),),
)


def write(queries: "Queries", jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
    """Put jobs into the outbox, in the commit under way."""
    rows = [
        (job.id, job.tenant_id, job.created_by, msgspec.json.encode(job).decode(), now)
        for job in jobs
    ]
    queries.many("add", rows)
    return [Enqueued(job.id, True) for job in jobs]


async def deliver(app: "Penstock", only: Sequence[str] | None = None) -> int:
    """Enqueue what waits in the outbox, oldest first, then forget it; how many jobs.

    `only` are the ids that somebody has just written. Whoever dies in between leaves a row that is
    delivered again, under the same id.
    """
    if app.beside is None or app.store.inbox is None:
        return 0
    from penstock.app.transact import make_tables

    await make_tables(app, TABLES)
    if only is not None:
        return len((await _deliver(app, app.store.inbox, await _rows(app, only))).done)
    delivered, after, more = 0, "", True
    while more and (rows := await _page(app, after)):
        outcome = await _deliver(app, app.store.inbox, rows)
        delivered, after, more = delivered + len(outcome.done), rows[-1][0], outcome.answers
    return delivered


Row = tuple[str, str]
"""An id and the document of its job."""


async def _page(app: "Penstock", after: str) -> list[Row]:
    def question(tx: "TableTransaction") -> list[Row]:
        return [(row[0], row[1]) for row in tx.of(TABLES).rows("page", (after, BATCH))]

    return await app.table_store("outbox").read(question)


async def _rows(app: "Penstock", ids: Sequence[str]) -> list[Row]:
    def question(tx: "TableTransaction") -> list[Row]:
        queries = tx.of(TABLES)
        found = [queries.row("one", (job_id,)) for job_id in sorted(ids)]
        return [(row[0], row[1]) for row in found if row is not None]

    return await app.table_store("outbox").read(question)


class _Outcome(NamedTuple):
    """The ids that were delivered, and whether the store of jobs still answers."""

    done: list[str]
    answers: bool


async def _deliver(app: "Penstock", inbox: "Inbox", rows: Sequence[Row]) -> _Outcome:
    done: list[str] = []
    refused: list[tuple[str, str]] = []
    answers = True
    for job_id, document in rows:
        try:
            await inbox.deliver(msgspec.json.decode(document, type=NewJob))
        except StoreUnavailable:
            answers = False
            break
        except (PenstockError, msgspec.MsgspecError) as error:
            refused.append((str(error)[:1_000], job_id))
            warn("not_delivered", job_id=job_id, error=str(error))
        else:
            done.append(job_id)

    def confirm(tx: "TableTransaction") -> None:
        tx.of(TABLES).many("remove", [(job_id,) for job_id in done])
        tx.of(TABLES).many("note_error", refused)

    if done or refused:
        await app.table_store("outbox").write(confirm)
        await inbox.confirm(done)
    return _Outcome(done, answers)


def warn(event: str, **details: Any) -> None:
    """Say what went wrong; a program that only enqueues does not load what it is said with."""
    import structlog

    structlog.get_logger("penstock.outbox").warning(event, **details)


class Waiting(Struct):
    """A job that is still in the outbox, and why, if it was refused."""

    id: str
    waits_since: int
    tries: int
    error: str | None


async def ls(app: "Penstock") -> list[Waiting]:
    """List the jobs that are still in the outbox, the oldest first."""
    if app.beside is None:
        return []
    from penstock.app.transact import make_tables

    await make_tables(app, TABLES)
    rows = await app.table_store("outbox").read(lambda tx: tx.of(TABLES).rows("waiting"))
    return [Waiting(*row) for row in rows]


async def drop(app: "Penstock", job_id: str) -> str:
    """Take a job out of the outbox that can never be delivered; it is lost."""
    await ls(app)
    store = app.table_store("outbox")
    gone = await store.write(lambda tx: tx.of(TABLES).run("remove", (job_id,)))
    return f"Dropped {job_id}." if gone else f"There is no {job_id} in the outbox."


async def concerns(app: "Penstock") -> list[Concern]:
    """Jobs that were refused, or that wait for longer than a delivery should take."""
    found = await ls(app)
    late = app.store.clock.now() - LATE_MS
    stuck = [each for each in found if each.error is not None or each.waits_since < late]
    if not stuck:
        return []
    told = f"{len(stuck):,} jobs wait to be delivered; see `penstock outbox ls`."
    return [Concern("degraded", "Outbox", told, since_at=stuck[0].waits_since)]


outbox = Extension(
    name="outbox",
    title="Outbox",
    always=True,
    tables=TABLES,
    help="Jobs on their way from tables into a store without.",
    passes=(Pass(name="deliver", every=1.0, run=deliver),),
    commands=(Command(name="ls", run=ls), Command(name="drop", run=drop)),
    concerns=concerns,
)
