"""Erasing what belongs to a tenant or a person: jobs, schedules, and what extensions keep of them.

The audit log stays: it is a chain that names ids and never contents.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.app.extensions import loaded_part
from penstock.app.transact import make_tables
from penstock.extension import Erasing, Table
from penstock.model.errors import InvalidOption, JobsRunning
from penstock.model.options import check_text
from penstock.model.states import Status
from penstock.operate.actor import PROGRAM, Actor
from penstock.operate.traces import erase_traces
from penstock.outbox.extension import TABLES as OUTBOX
from penstock.store.contract import JobFilter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

PAGE = 500
ENDED = tuple(status for status in Status if status.terminal)
RUNNING = (Status.IN_PROGRESS,)
WAITING = tuple(status for status in Status if status not in {*ENDED, *RUNNING})


class Erased(Struct, frozen=True):
    """How much was erased, by what it was, and what is left to do for the last of its bytes."""

    parts: dict[str, int]
    remarks: list[str] = []


async def erase(
    app: "Penstock",
    *,
    tenant: str | None = None,
    person: str | None = None,
    actor: Actor = PROGRAM,
) -> Erased:
    """Erase all that belongs to a tenant, to a person, or to a person within a tenant.

    Jobs are a tenant's, or a person's who is their `created_by`. Those that run are asked to stop,
    and the erasure is refused until they have: run it again. With a tenant go its tokens and users,
    limits and pauses, with a person the user of that name, and with both the alerts that name them.
    """
    for name, value in (("tenant", tenant), ("person", person)):
        if value is not None:
            check_text(name, value)
            if not value:
                raise InvalidOption(name, value, "a name, not an empty text")
    if tenant is None and person is None:
        raise InvalidOption("erase", "nothing", "told whose traces to erase: tenant= or person=")
    whose = Erasing(tenant=tenant, person=person)
    subject = f"tenant:{tenant}" if tenant else "person"
    async with actor.doing("erase", subject, tenant_id=tenant or ""):
        # First what extensions keep elsewhere: they may find it by their rows, or make jobs of it.
        erased = await _ask_extensions(app, whose)
        found = await _erase_once(app, whose)
        while found.total():
            # What was on its way meanwhile, from a running schedule or an outbox.
            erased += found
            found = await _erase_once(app, whose)
        erased += await erase_traces(app, whose)
        if erased["jobs"]:
            # An extension may have copied one of them just before it was gone.
            erased += await _ask_extensions(app, whose)
        parts = {name: count for name, count in erased.items() if count}
        return Erased(parts, await scrub(app))


async def scrub(app: "Penstock") -> list[str]:
    """Have the bytes of what was erased leave the disk; what is left to do, in sentences."""
    stores = [app.store] if app.beside is None else [app.beside, app.store]
    return [remark for store in stores for remark in await store.scrub()]


async def _erase_once(app: "Penstock", whose: Erasing) -> Counter[str]:
    """Each after what could make it anew: schedules and the outbox make jobs."""
    found: Counter[str] = Counter()
    whole = whose.tenant if whose.person is None else None
    if whole is not None:
        found["schedules"] += await _erase_schedules(app, whole)
    found += await _erase_tables(app, whose)
    found["jobs"] += await _erase_jobs(app, whose)
    if whole is not None:
        found["unique keys"] += await app.store.upkeep.erase_keys(whole)
        await app.store.metrics.erase(whole)
        await app.store.changes.erase(whole)
    return found


async def _erase_jobs(app: "Penstock", whose: Erasing) -> int:
    ids = await _ids(app, whose, WAITING)
    while ids:
        await app.store.jobs.cancel(ids, "erased")
        ids = await _ids(app, whose, WAITING)
    running = await _ids(app, whose, RUNNING)
    if running:
        await app.store.jobs.cancel(running, "erased")
        raise JobsRunning(len(running))
    erased = 0
    while ids := await _ids(app, whose, ENDED):
        erased += await app.store.upkeep.erase(ids)
    return erased


async def erase_jobs(app: "Penstock", ids: Sequence[str]) -> int:
    """Erase some jobs and those that they made; how many.

    Those that run are asked to stop, and the erasure is refused until they have.
    """
    found: dict[str, Status] = {}
    wanted, looked = list(ids), set[str]()
    while wanted:
        found |= {job.id: job.status for job in await app.store.reader.get(wanted)}
        looked |= {*wanted}  # one that is gone may have made others that are not
        children = [child for each in wanted for child in await _children(app, each)]
        wanted = [child for child in dict.fromkeys(children) if child not in looked]
    waiting = [job_id for job_id, status in found.items() if status not in ENDED]
    if waiting:
        after = await app.store.jobs.cancel(waiting, "erased")
        running = [job_id for job_id in waiting if after[job_id] in RUNNING]
        if running:
            raise JobsRunning(len(running))
    return await app.store.upkeep.erase(list(found)) if found else 0


async def _children(app: "Penstock", job_id: str) -> list[str]:
    """The jobs that one made."""
    ids: list[str] = []
    while page := await app.store.reader.find(
        JobFilter(parent_job_id=job_id, before=ids[-1] if ids else None, limit=PAGE)
    ):
        ids += [job.id for job in page]
    return ids


async def _ids(app: "Penstock", whose: Erasing, statuses: tuple[Status, ...]) -> list[str]:
    wanted = JobFilter(
        statuses=statuses, tenant_id=whose.tenant, created_by=whose.person, limit=PAGE
    )
    return [job.id for job in await app.store.reader.find(wanted)]


async def _erase_schedules(app: "Penstock", tenant: str) -> int:
    removed = 0
    for schedule in await app.store.schedules.known(tenant_id=tenant):
        removed += await app.store.schedules.remove(schedule.name, tenant)
    return removed


async def _erase_tables(app: "Penstock", whose: Erasing) -> Counter[str]:
    """Their rows in the tables of all extensions, the outbox first, for it makes jobs."""
    parts: Counter[str] = Counter()
    store = (app.beside or app.store).tables
    there = {} if store is None else await store.versions()
    for name in sorted(there, key=lambda name: (name != OUTBOX.extension, name)):
        extension = app.extensions.find(name)
        if extension is None:
            raise InvalidOption("extension", name, "installed here, to erase what it keeps")
        if store is not None and extension.tables is not None:
            await make_tables(app, extension.tables)
            # Those that may point at others first.
            for table in reversed(extension.tables.tables):
                if not table.stays and (where := _where(table, whose)):
                    parts[table.name] += await store.delete(table, where)
    return parts


async def _ask_extensions(app: "Penstock", whose: Erasing) -> Counter[str]:
    """What extensions keep elsewhere: those that are enabled, and those that have tables here."""
    parts: Counter[str] = Counter()
    store = (app.beside or app.store).tables
    there = {} if store is None else await store.versions()
    for name in sorted({*there, *(extension.name for extension in app.extensions)}):
        extension = app.extensions.find(name)
        if extension is not None and extension.erase is not None:
            parts[name] += await loaded_part(extension, extension.erase)(app, whose)
    return parts


def _where(table: Table, whose: Erasing) -> dict[str, str] | None:
    """Which rows are theirs; none of a table that does not say whose its rows are."""
    told = ((table.tenant, whose.tenant), (table.person, whose.person))
    where = {column: value for column, value in told if value is not None}
    return None if None in where else {str(column): value for column, value in where.items()}
