"""`penstock events archive`, `query` and `erase`: what becomes of old and of unwanted events."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from penstock.events import archive as archiving
from penstock.events import job_archive
from penstock.events.event import Session
from penstock.events.query import MOST_ROWS, plain
from penstock.extension import Shown
from penstock.model.clock import LATEST, from_iso
from penstock.model.wording import counted
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

Progress = Callable[[str, int, int | None], None]


async def archive(
    app: "Penstock",
    actor: str,
    progress: Progress,
    before: Annotated[
        str | None, "Archive the whole months before this time; by default events.archive_days ago."
    ] = None,
) -> Shown:
    """Move old months of events to Parquet files, which are compared before anything is deleted."""
    done = _Done(progress)
    until = None if before is None else from_iso(before)
    made = await archiving.archive(app, until, show=done, actor=Operator(app, actor).actor)
    told = f"{counted(done.rows, 'event')} archived in {counted(len(made), 'file')}."
    people = told if made else "No whole month is old enough."
    return Shown(people, [each._asdict() for each in made])


async def archive_jobs(
    app: "Penstock",
    actor: str,
    progress: Progress,
    before: Annotated[
        str | None,
        "Archive jobs that ended in whole months before this time; by default "
        "events.jobs_archive_days ago.",
    ] = None,
) -> Shown:
    """Move jobs that ended long ago to Parquet files, compared before anything is deleted."""
    done = _Done(progress)
    until = None if before is None else from_iso(before)
    made = await job_archive.archive_jobs(app, until, show=done, actor=Operator(app, actor).actor)
    told = f"{counted(done.rows, 'job')} archived in {counted(len(made), 'file')}."
    return Shown(told if made else "No job is old enough.", [each._asdict() for each in made])


class _Done:
    """Shows how many rows are in files so far."""

    def __init__(self, progress: Progress) -> None:
        self.rows = 0
        self._progress = progress

    def __call__(self, file: str, rows: int) -> None:
        self.rows += rows
        self._progress("Archiving", self.rows, None)


async def query(
    app: "Penstock",
    sql: Annotated[str, "A SELECT over the views events, jobs, job_executions, job_logs."],
    since: Annotated[str | None, "Only events of this time or later: 2026-11-15T03:28Z."] = None,
    until: Annotated[str | None, "Only events before this time."] = None,
    tenant: Annotated[str | None, "Only events of this tenant."] = None,
    limit: Annotated[int, "At most so many rows."] = MOST_ROWS,
) -> Shown:
    """Answer a question in SQL over all events, those of the archive included."""
    answer = await app.events.query(
        sql,
        since=0 if since is None else from_iso(since),
        until=LATEST + 1 if until is None else from_iso(until),
        tenant=tenant,
        limit=limit,
    )
    rows = [dict(zip(answer.columns, row, strict=True)) for row in plain(answer)]
    more = (f"There are more than {counted(limit, 'row')}.",) if answer.more else ()
    return Shown((rows or "No row.", *more), rows)


async def erase(
    app: "Penstock",
    actor: str,
    session: Annotated[str, "The session."],
    platform: Annotated[str, "The session's platform."] = "",
    tenant: Annotated[str, "The session's tenant."] = "",
) -> Shown:
    """Erase a session: its events, what was derived from them, and the jobs made of them."""
    operator = Operator(app, actor).actor
    erased = await app.events.erase(Session(tenant, platform, session), actor=operator)
    told = ", ".join(f"{count:,} {name}" for name, count in erased.parts.items())
    left = tuple(f"Left to do: {remark}." for remark in erased.remarks)
    shown = f"Erased: {told}. Backups still hold them." if told else "There was nothing to erase."
    return Shown((shown, *left), {"erased": erased.parts, "remarks": erased.remarks})
