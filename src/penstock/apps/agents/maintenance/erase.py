"""What the agent workers keep of a tenant or a person beside their rows: indexes, files, jobs."""

from typing import TYPE_CHECKING, Any

from penstock.apps.agents.extension import TABLES
from penstock.apps.agents.learning import patterns
from penstock.apps.agents.maintenance.exports import erase_exports
from penstock.apps.agents.maintenance.subject import Subject, jobs_of, where_of
from penstock.apps.agents.sessions import archive
from penstock.apps.agents.vectors.store import vectors_of
from penstock.events import job_archive
from penstock.operate.erase import erase_jobs

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Erasing


async def erase_whose(app: "Penstock", whose: "Erasing") -> int:
    """Erase it, and the rows it is found by: `penstock erase` asks for it; it may be asked twice.

    Patterns, archives and exports are found by rows, so they go first; an index is built anew of
    the rows that are left, so it comes after them.
    """
    subject = Subject(tenant=whose.tenant, person=whose.person)
    erased = await patterns.forget(app, whose)
    erased += await archive.erase(app, whose)
    erased += await erase_exports(app, whose)
    if subject.person is not None:
        erased += await _erase_about(app, subject)
    erased += await _erase_rows(app, subject)
    await vectors_of(app).forget(tenant=whose.tenant, person=whose.person)
    return erased


async def _erase_rows(app: "Penstock", subject: Subject) -> int:
    store = app.table_store("agents")
    erased = 0
    for table in reversed(TABLES.tables):
        where = where_of(table, subject)
        if where and not table.stays and await store.columns(table):
            erased += await store.delete(table, where)
    return erased


async def _erase_about(app: "Penstock", subject: Subject) -> int:
    """What is about a person and does not say so in a column of its own."""
    asked = {"tenant": subject.tenant, "person": subject.person}

    def work(tx: Any) -> int:
        names = ("erase_deliveries_about", "erase_subscriptions_about", "erase_classifiers_about")
        return sum(int(tx.agents.run(name, asked)) for name in names)

    erased = await app.transact(work)
    about = [job.id async for page in jobs_of(app, subject) for job in page]
    erased += await erase_jobs(app, about) if about else 0
    if "events" in await app.table_store("agents").versions():
        erased += await job_archive.erase(app, subject.is_named_in, ["payload"])
    return erased
