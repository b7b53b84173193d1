"""The outbox: rows written in the commit of a unit of work, and the pass that delivers them.

A job's id is that of its row, so that one that is delivered twice is there once. The store of jobs
remembers the id, however soon the job is done and pruned, until its row is gone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.extension import Extension, Pass, Table, Tables
from penstock.model.errors import PenstockError
from penstock.model.job import Enqueued, NewJob
from penstock.model.store_errors import StoreUnavailable

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract.jobs import Inbox
    from penstock.store.contract.tables import Queries, TableTransaction

BATCH = 100
TABLES = Tables(
    extension="outbox",
    package="penstock.outbox",
    tables=(Table("outbox_jobs", key=("id",), tenant="tenant_id"),),
)


def write(queries: "Queries", jobs: Sequence[NewJob], now: int) -> list[Enqueued]:
    """Put jobs into the outbox, in the commit under way."""
    rows = [(job.id, job.tenant_id, msgspec.json.encode(job).decode(), now) for job in jobs]
    queries.many("add", rows)
    return [Enqueued(job.id, True) for job in jobs]


async def deliver(app: "Penstock") -> int:
    """Enqueue what waits in the outbox, oldest first, then forget it; how many jobs.

    Whoever dies in between leaves a row that is delivered again, under the same id.
    """
    if app.beside is None or app.store.inbox is None:
        return 0
    from penstock.app.transact import make_tables

    await make_tables(app, TABLES)
    delivered, after = 0, ""
    while rows := await _page(app, after):
        delivered += await _deliver(app, app.store.inbox, rows)
        after = rows[-1][0]
    return delivered


async def _page(app: "Penstock", after: str) -> list[tuple[str, str]]:
    def question(tx: "TableTransaction") -> list[tuple[str, str]]:
        return [
            (job_id, document) for job_id, document in tx.of(TABLES).rows("page", (after, BATCH))
        ]

    return await app.table_store("outbox").read(question)


async def _deliver(app: "Penstock", inbox: "Inbox", rows: Sequence[tuple[str, str]]) -> int:
    done: list[str] = []
    refused: list[tuple[str, str]] = []
    for job_id, document in rows:
        try:
            await inbox.deliver(msgspec.json.decode(document, type=NewJob))
        except StoreUnavailable:
            break
        except (PenstockError, msgspec.MsgspecError) as error:
            refused.append((str(error)[:1_000], job_id))
        else:
            done.append(job_id)

    def confirm(tx: "TableTransaction") -> None:
        tx.of(TABLES).many("remove", [(job_id,) for job_id in done])
        tx.of(TABLES).many("note_error", refused)

    await app.table_store("outbox").write(confirm)
    await inbox.confirm(done)
    return len(done)


outbox = Extension(
    name="outbox",
    title="Outbox",
    always=True,
    tables=TABLES,
    passes=(Pass(name="deliver", every=1.0, run=deliver),),
)
