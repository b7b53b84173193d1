"""Ended jobs leave their store for files of the archive, with their executions and their logs.

A file holds jobs that ended in one month. The store of jobs may be another one than that of the
tables, so there is no commit for both: a file that was read back and compared is `leaving`, and
its jobs are deleted; then it is `whole`. What breaks off in between is done by the next pass. A job
that was requeued before it could be deleted stays, and is archived again when it has ended again:
of two rows with one id the later counts.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_origin

from msgspec import to_builtins
from msgspec.structs import fields

from penstock.events import archive
from penstock.events.archive import Archived, Changed, Nothing, Show, month_name, month_of
from penstock.events.background import StillRunning
from penstock.events.parquet import NoArchive, Row, arrow, read, table_of
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.operate.actor import PROGRAM, Actor
from penstock.store.contract import Execution, LogLine, Retention
from penstock.store.contract.metrics import DAY_MS
from penstock.upkeep.prune import retention_of

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.app.penstock import Penstock

JOBS = "jobs"
ROLE = "archive:jobs"
TERM_MS = 600_000
"""So long at most nobody else begins after a process that archives has been killed."""
PART = 5_000
PART_BYTES = 64 << 20
"""No file has more jobs, nor many more bytes of them, so that one is compared in memory."""
AT_ONCE = 1_000
ALL_LINES = 1_000_000
OF_OTHERS = ("job_id",)
STATES = ("leaving", "whole")
WHOSE = ["id", "tenant_id", "created_by", "parent_job_id"]


async def archive_jobs(
    app: "Penstock",
    before: int | None = None,
    *,
    show: Show | None = None,
    actor: Actor = PROGRAM,
) -> list[Archived]:
    """Archive jobs that ended in whole months before a time; without one, as the settings say."""
    ends = ends_of(app, before)
    async with actor.doing("events.archive_jobs", JOBS):
        return await _archive_until(app, archive.folder_of(app), ends, show)


async def _archive_until(
    app: "Penstock", folder: "Path", ends: Mapping[Status, int], show: Show | None
) -> list[Archived]:
    """One process at a time does this: two would write the same jobs to two files."""
    owner, upkeep = new_id(), app.store.upkeep
    if not await upkeep.lead(ROLE, owner, TERM_MS):
        raise StillRunning(ROLE)
    try:
        await archive.sweep(app)
        for file in await files(app):
            if file.state == "leaving":
                await _leave(app, file)
        made: list[Archived] = []
        while (part := await _archive_part(app, folder, ends)) is not None:
            deleted = await _leave(app, part)
            made.append(part._replace(state="whole"))
            if show is not None:
                show(part.file, part.rows)
            if not deleted or not await upkeep.lead(ROLE, owner, TERM_MS):
                break  # the next pass goes on
        return made
    finally:
        await upkeep.resign(ROLE, owner)


async def keep_up(app: "Penstock") -> None:
    """Archive the jobs that have become old enough: a pass of the leader, if it is told to."""
    if app.extensions.settings(archive.EVENTS).jobs_archive_days:
        with suppress(StillRunning):  # somebody does it by hand
            await archive_jobs(app)


async def files(app: "Penstock") -> list[Archived]:
    """The files of jobs, those included whose jobs are just being deleted."""
    found = [file for state in STATES for file in await archive.files(app, state)]
    return [file for file in found if file.subject == JOBS]


def ends_of(app: "Penstock", before: int | None = None) -> dict[Status, int]:
    """The time before which jobs of each status must have ended; refused if nothing says so.

    No dead letter goes before `keep_dead`, nor does any job by itself before it would be pruned.
    """
    archive.folder_of(app)
    now = app.store.clock.now()
    kept = dict(retention_of(app.settings).keep_ms)
    if before is None:
        days: int = app.extensions.settings(archive.EVENTS).jobs_archive_days
        if not days:
            raise InvalidOption("before", before, "a time, or events.jobs_archive_days above 0")
        before = now - days * DAY_MS
    else:
        kept |= {Status.COMPLETED: 0, Status.CANCELLED: 0}
    return {
        status: month_of(max(0, min(before, now - keep_ms)))[0] for status, keep_ms in kept.items()
    }


async def _archive_part(
    app: "Penstock", folder: "Path", ends: Mapping[Status, int]
) -> Archived | None:
    """Write a file of the first jobs of a month, as many as it holds; None if there are none."""
    while (ids := await _to_archive(app, ends)) is not None:
        try:
            file = await _write_part(app, folder, *ids, ends)
        except Changed:
            continue
        except Nothing:
            return None
        listed = [each for each in await files(app) if each.file == file]
        if listed:  # else somebody has erased from it already, and written it anew
            return listed[0]
    return None


async def _to_archive(app: "Penstock", ends: Mapping[Status, int]) -> tuple[str, list[str]] | None:
    """A month, and the ids of the first jobs that ended in it; None if no job is old enough."""
    now = app.store.clock.now()
    retention = Retention(
        keep_ms={status: now - end for status, end in ends.items()},
        keep_last=app.settings.keep_last,
    )
    ids = await app.store.upkeep.prunable(retention, PART)
    ended: list[tuple[int, str]] = []
    for begin in range(0, len(ids), AT_ONCE):
        jobs = await app.store.reader.get(ids[begin : begin + AT_ONCE])
        ended += [(job.completed_at or 0, job.id) for job in jobs if _is_old(job, ends)]
    if not ended:
        return None
    ended.sort()
    first = ended[0][0]
    until = month_of(first)[1]
    return month_name(first), [job_id for at, job_id in ended if at < until][:PART]


def _is_old(job: Job, ends: Mapping[Status, int]) -> bool:
    return job.completed_at is not None and job.completed_at < ends.get(job.status, 0)


async def _write_part(
    app: "Penstock", folder: "Path", month: str, ids: Sequence[str], ends: Mapping[Status, int]
) -> str:
    """Write jobs to a file, which is read back and compared."""
    async with archive.new_file(app, folder, month, JOBS) as file:
        # Read only now: whoever erases a job meanwhile gives the file up.
        rows = await _rows(app, ids, ends)
        if not rows:
            raise Nothing
        written = await archive.write_file(folder, file, table_of(rows, schema()), _counted(rows))
        await app.transact(lambda tx: archive.finish(tx.events.queries, written, "leaving"))
    return file


async def _rows(app: "Penstock", ids: Sequence[str], ends: Mapping[Status, int]) -> list[Row]:
    """Jobs with all that hangs on them, as rows of a file."""
    reader = app.store.reader
    rows: list[Row] = []
    size = 0
    for begin in range(0, len(ids), AT_ONCE):
        for job in await reader.get(ids[begin : begin + AT_ONCE]):
            if size > PART_BYTES:
                return rows
            if not _is_old(job, ends):
                continue
            executions = to_builtins(await reader.executions(job.id))
            logs = to_builtins(await reader.logs(job.id, ALL_LINES))
            row = to_builtins(job) | {"executions": executions, "logs": logs}
            rows.append(row)
            size += _size(row)
    return rows


def _size(row: Row) -> int:
    """About how many bytes a job takes."""
    texts = [row[name] for name in ("payload", "result", "error_details", "metadata")]
    texts += [line["message"] for line in row["logs"]]
    texts += [ran[name] for ran in row["executions"] for name in ("result", "error_stack")]
    return sum(len(text) for text in texts if text)


def _counted(rows: Sequence[Row]) -> dict[str, int]:
    ended = [row["completed_at"] for row in rows]
    return {
        "first_at": min(ended),
        "last_at": max(ended),
        "row_count": len(rows),
        "erased_count": 0,
        "last_sequence": 0,
    }


async def _leave(app: "Penstock", file: Archived) -> int:
    """Delete the jobs of a file from their store, but those that have ended again since."""
    [path] = archive.paths_of(app, [file])
    ids = (await asyncio.to_thread(read, path, None, ["id"]))["id"].to_pylist()
    deleted = 0
    for begin in range(0, len(ids), AT_ONCE):
        some = ids[begin : begin + AT_ONCE]
        deleted += await app.store.upkeep.prune_jobs(some, file.last_at + 1)
    await archive.run(app, "have_left", (file.file,))
    return deleted


@cache
def schema() -> Any:
    """The columns of a file: those of a job, and lists of its executions and of its log."""
    pyarrow, _ = arrow()
    lists = [("executions", _columns(Execution)), ("logs", _columns(LogLine))]
    nested = [(name, pyarrow.list_(pyarrow.struct(columns))) for name, columns in lists]
    return pyarrow.schema([*_columns(Job), *nested])


def _columns(kind: type) -> list[tuple[str, Any]]:
    return [(each.name, _column(each.type)) for each in fields(kind) if each.name not in OF_OTHERS]


def _column(kind: Any) -> Any:
    """What Arrow calls the type of a field."""
    pyarrow, _ = arrow()
    if get_origin(kind) is tuple:
        return pyarrow.list_(pyarrow.string())
    among = get_args(kind) or (kind,)
    if int in among:
        return pyarrow.int64()
    return pyarrow.float64() if float in among else pyarrow.string()


Means = Callable[[Row], bool]


async def erase(app: "Penstock", means: Means, columns: Sequence[str] = ()) -> int:
    """Write those files anew that hold certain jobs, without them; how many jobs.

    `means` is asked with what says whose a job is, and with these further columns.
    """
    erased = 0
    for file in await files(app):
        erased += await _erase_from(app, file, means, columns)
    # The store knows of a file before what goes into it is read: that may have been too early.
    await archive.run(app, "give_up_writing", ())
    await archive.sweep(app)
    return erased


async def erase_jobs(app: "Penstock", ids: Collection[str]) -> int:
    """Erase some archived jobs; how many."""
    return await erase(app, lambda row: row["id"] in ids)


async def made_by(app: "Penstock", ids: Collection[str]) -> set[str]:
    """These jobs, and the archived ones that they made, and so on."""
    found, latest = {*ids}, {*ids}
    listed = archive.paths_of(app, await files(app)) if ids else []
    while latest and listed:
        wanted = [("parent_job_id", "in", sorted(latest))]
        tables = [await asyncio.to_thread(read, path, wanted, ["id"]) for path in listed]
        latest = {job_id for table in tables for job_id in table["id"].to_pylist()} - found
        found |= latest
    return found


async def _erase_from(
    app: "Penstock", file: Archived, means: Means, columns: Sequence[str] = ()
) -> int:
    """Write a file anew without certain jobs; how many they were."""
    folder, [path] = archive.folder_of(app), archive.paths_of(app, [file])
    try:
        whose = await asyncio.to_thread(read, path, None, [*WHOSE, *columns])
        stay = [not means(row) for row in whose.to_pylist()]
        if not all(stay):
            await _write_anew(app, folder, file, stay)
    except (Changed, NoArchive) as error:  # its jobs have left, or somebody else erases, too
        current = await files(app)
        if isinstance(error, NoArchive) and file in current:
            raise
        again = [each for each in current if _same(each, file)]
        return sum([await _erase_from(app, each, means, columns) for each in again])
    return stay.count(False)


async def _write_anew(
    app: "Penstock", folder: "Path", file: Archived, stay: Sequence[bool]
) -> None:
    """Put a file that holds some of its jobs into its place, or nothing if it would be empty."""
    if not any(stay):
        if not await archive.run(app, "give_up_archive", (file.file, file.state)):
            raise Changed
        return
    pyarrow, _ = arrow()
    async with archive.new_file(app, folder, file.file[:7], JOBS) as name:
        [path] = archive.paths_of(app, [file])
        left = (await asyncio.to_thread(read, path)).filter(pyarrow.array(stay))
        told = {
            "first_at": file.first_at,
            "last_at": file.last_at,
            "row_count": left.num_rows,
            "erased_count": 0,
            "last_sequence": 0,
        }
        written = await archive.write_file(folder, name, left, told)

        def work(tx: Any) -> None:
            if not tx.events.queries.run("give_up_archive", (file.file, file.state)):
                raise Changed
            archive.finish(tx.events.queries, written, file.state)

        await app.transact(work)


def _same(one: Archived, other: Archived) -> bool:
    """Whether two files are of the same jobs."""
    return (one.first_at, one.last_at) == (other.first_at, other.last_at)
