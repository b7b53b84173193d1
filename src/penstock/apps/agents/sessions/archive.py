"""Archived sessions: Parquet files of one tenant each, a row for a session with its turns in it.

A file has its row in the tables before it is written. Once it reads back as it was written, one
commit makes it part of the archive and removes the turns: a session is in one place, never in none.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.apps.agents.files import UNFINISHED, find_folder, folder_of, write_file
from penstock.apps.agents.sessions.records import (
    ARCHIVED,
    AgentSession,
    Archive,
    Turn,
    session_of,
    written,
)
from penstock.apps.agents.sessions.sessions import all_turns, find_session
from penstock.events.parquet import ArchiveDiffers, arrow, table_of
from penstock.model.errors import PenstockError
from penstock.model.ids import derived_id, id_time_ms

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Erasing

FOLDER = "sessions"
WHOLE = "whole"
MOST_TURNS = 20_000
"""No file has more, unless they are of one session: it is built and compared in memory."""
ABANDONED_MS = 86_400_000
TRIES = 3

Row = dict[str, Any]


class ArchiveDamaged(PenstockError):
    """A file of archived sessions that is gone, or is not what was written."""

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        super().__init__(
            f"The archived sessions in {file} cannot be read: {problem}. "
            "Bring the file back from a copy; nothing was changed."
        )


class _Changed(Exception):
    """A session, or the row of its file, is no longer as it was read."""


class _Kept(NamedTuple):
    session: AgentSession
    turns: list[Turn]


class Wanted(NamedTuple):
    """Which sessions are to be archived: these, or those that were quiet since then."""

    tenant: str | None
    before: int
    session_ids: Sequence[str] | None
    batch_size: int


async def archive(
    app: "Penstock", job_id: str, wanted: Wanted, show: Callable[[int], None] | None = None
) -> list[Archive]:
    """Archive sessions, file by file; the files that this job has made, before it was killed too.

    Each file is known by the job and its number, so that one that was begun is begun again.
    """
    folder = folder_of(app)
    await remove_abandoned(app)
    tries = 0
    while kept := await app.read(partial(_choose, wanted)):
        done = await _made_by(app, job_id)
        if show is not None:
            show(sum(each.sessions for each in done))
        try:
            await _archive_part(app, folder, job_id, len(done) + 1, kept)
            tries = 0
        except _Changed:
            tries += 1
            if tries == TRIES:
                raise
    return await _made_by(app, job_id)


async def _made_by(app: "Penstock", job_id: str) -> list[Archive]:
    rows = await app.read(lambda tx: tx.agents.rows("archives_of_job", (job_id,)))
    return [found for found in (Archive(*row) for row in rows) if found.state == WHOLE]


def _choose(wanted: Wanted, tx: Any) -> list[_Kept]:
    """Sessions of one tenant that go into one file, and their turns."""
    rows: list[tuple[Any, ...]]
    if wanted.session_ids is None:
        asked = {"before": wanted.before, "tenant": wanted.tenant, "limit": wanted.batch_size}
        rows = tx.agents.rows("sessions_to_archive", asked)
    else:
        rows = []
        for each in dict.fromkeys(wanted.session_ids):
            rows += tx.agents.rows("session_to_archive", {"id": each, "tenant": wanted.tenant})
            if len(rows) == wanted.batch_size:
                break
    kept: list[_Kept] = []
    turns = 0
    for session in map(session_of, rows):
        turns += session.turns
        if kept and (session.tenant_id != kept[0].session.tenant_id or turns > MOST_TURNS):
            break
        kept.append(_Kept(session, all_turns(tx, session.id)))
    return kept


async def _archive_part(
    app: "Penstock", folder: Path, job_id: str, number: int, kept: list[_Kept]
) -> None:
    archive_id = derived_id(id_time_ms(job_id), "session-archive", job_id, str(number))
    file = f"{FOLDER}/{archive_id}-0.parquet"
    tenant_id = kept[0].session.tenant_id

    def begin(tx: Any) -> int:
        row = {"id": archive_id, "tenant_id": tenant_id, "job_id": job_id, "file": file}
        begun: int = tx.agents.run("begin_archive", {**row, "now": tx.now})
        return begun

    if not await app.transact(begin):
        raise _Changed  # another execution of this job has just finished it
    rows = [_row_of(each) for each in kept]
    hashed, size = await asyncio.to_thread(_write, folder / file, rows)
    turns = sum(len(each.turns) for each in kept)
    figures = {"id": archive_id, "sha256": hashed, "bytes": size, "turns": turns}

    def finish(tx: Any) -> None:
        if not tx.agents.run("finish_archive", {**figures, "sessions": len(kept)}):
            raise _Changed
        for session, _ in kept:
            as_read = {
                "id": session.id,
                "archive_id": archive_id,
                "status": session.status,
                "turns": session.turns,
                "last_active_at": session.last_active_at,
            }
            if not tx.agents.run("put_session_away", as_read):
                raise _Changed
            tx.agents.run("drop_turns", (session.id,))

    await app.transact(finish)


async def remove_abandoned(app: "Penstock") -> None:
    """Remove files that were begun by jobs that never came back, and those without a row."""
    folder = folder_of(app)

    def work(tx: Any) -> list[str]:
        rows = tx.agents.rows("abandoned_archives", (tx.now - ABANDONED_MS,))
        for row in rows:
            tx.agents.run("drop_archive", (row[0],))
        return [str(row[4]) for row in rows]

    for file in await app.transact(work):
        (folder / file).unlink(missing_ok=True)
    await _remove_unknown(app, folder / FOLDER)


async def _remove_unknown(app: "Penstock", folder: Path) -> None:
    """Remove files without a row: what was overtaken by an erasure while it was written.

    A file has its row before it is there, so the files are listed first.
    """
    paths = await asyncio.to_thread(lambda: sorted(folder.glob("*-*")))
    if paths:
        known = {archive.id for archive in await _archives_of(app, None)}
        for path in paths:
            if path.name.partition("-")[0] not in known:
                path.unlink(missing_ok=True)


async def archived_turns(app: "Penstock", session: AgentSession) -> list[Turn]:
    """The turns of an archived session, from its file."""
    found = await app.read(lambda tx: tx.agents.row("archive", (session.archive_id,)))
    if found is None:
        raise ArchiveDamaged(f"archive {session.archive_id}", "it is not known here")
    return (await _read(app, Archive(*found), session.id)).turns


async def restore(app: "Penstock", session_id: str, tenant: str | None = None) -> AgentSession:
    """Bring an archived session back; one that is not archived is left as it is."""
    session = await app.read(lambda tx: find_session(tx, session_id, tenant))
    if session.status != ARCHIVED:
        return session
    found = await app.read(lambda tx: tx.agents.row("archive", (session.archive_id,)))
    if found is None:
        raise ArchiveDamaged(f"archive {session.archive_id}", "it is not known here")
    kept = await _read(app, Archive(*found), session_id)

    def work(tx: Any) -> AgentSession:
        told = {
            "id": session_id,
            "archive_id": session.archive_id,
            "status": kept.session.status,
            "now": tx.now,
        }
        if tx.agents.run("restore_session", told):  # otherwise somebody else just did
            for turn in kept.turns:
                tx.agents.run("add_turn", turn_row(kept.session, turn))
        return find_session(tx, session_id)

    return await app.transact(work)


async def erase(app: "Penstock", whose: "Erasing") -> int:
    """Erase sessions of a tenant or a person from all files, those half written too; how many."""
    erased = 0
    for archive in await _archives_of(app, whose.tenant):
        if whose.person is None:
            erased += await _remove(app, archive)
        else:
            erased += await _write_without(app, archive, whose.person)
    folder = find_folder(app)
    if folder is not None:
        await _remove_unknown(app, folder / FOLDER)
    return erased


async def _archives_of(app: "Penstock", tenant: str | None) -> list[Archive]:
    rows = await app.read(lambda tx: tx.agents.rows("archives_of", {"tenant": tenant}))
    return [Archive(*row) for row in rows]


async def _remove(app: "Penstock", archive: Archive) -> int:
    """Remove a file with all that is in it; the row goes last, so that it can be done again."""
    folder = folder_of(app) / FOLDER
    for path in folder.glob(f"{archive.id}-*"):
        path.unlink(missing_ok=True)
    await app.transact(lambda tx: tx.agents.run("drop_archive", (archive.id,)))
    return archive.sessions


async def _write_without(app: "Penstock", archive: Archive, person: str) -> int:
    """Write a file anew without a person's sessions, and remove every older one of it."""
    folder = folder_of(app)
    if archive.state != WHOLE:
        return await _remove(app, archive)  # whoever writes it begins again
    rows = await asyncio.to_thread(_rows_in, folder, archive)
    left = [row for row in rows if row["user_id"] != person]
    file = archive.file
    if not left:
        return await _remove(app, archive)
    if len(left) < len(rows):
        version = int(Path(archive.file).stem.rpartition("-")[2]) + 1
        file = f"{FOLDER}/{archive.id}-{version}.parquet"
        hashed, size = await asyncio.to_thread(_write, folder / file, left)
        told = {
            "id": archive.id,
            "before": archive.file,
            "file": file,
            "sha256": hashed,
            "bytes": size,
            "sessions": len(left),
            "turns": sum(len(row["turns"]) for row in left),
        }
        await app.transact(lambda tx: tx.agents.run("replace_archive", told))
    for path in (folder / FOLDER).glob(f"{archive.id}-*"):
        if path.name != Path(file).name:
            path.unlink(missing_ok=True)
    return len(rows) - len(left)


async def _read(app: "Penstock", archive: Archive, session_id: str) -> _Kept:
    rows = await asyncio.to_thread(_rows_in, folder_of(app), archive)
    for row in rows:
        if row["id"] == session_id:
            return _kept(row)
    raise ArchiveDamaged(archive.file, f"it does not hold session {session_id!r}")


def _rows_in(folder: Path, archive: Archive) -> list[Row]:
    pyarrow, parquet = arrow()
    try:
        data = (folder / archive.file).read_bytes()
    except FileNotFoundError:
        raise ArchiveDamaged(archive.file, "it is not there") from None
    if sha256(data).hexdigest() != archive.sha256:
        raise ArchiveDamaged(archive.file, "it is not what was written (its SHA-256 differs)")
    rows: list[Row] = parquet.read_table(pyarrow.BufferReader(data)).to_pylist()
    return rows


def _write(path: Path, rows: list[Row]) -> tuple[str, int]:
    """Write a file, read it back from disk and compare; its SHA-256 and its size."""
    pyarrow, parquet = arrow()
    table = table_of(rows, _schema())
    for left in path.parent.glob(f"{path.name}.*{UNFINISHED}"):
        left.unlink(missing_ok=True)  # by a process that was killed
    write_file(path, lambda file: parquet.write_table(table, file, compression="zstd"))
    data = path.read_bytes()
    if not parquet.read_table(pyarrow.BufferReader(data)).equals(table):
        raise ArchiveDiffers(str(path))
    return sha256(data).hexdigest(), len(data)


@cache
def _schema() -> Any:
    pyarrow, _ = arrow()
    whole, text = pyarrow.int64(), pyarrow.string()
    turn = pyarrow.struct(
        [
            ("n", whole),
            ("role", text),
            ("content", text),
            ("skill_id", text),
            ("succeeded", pyarrow.bool_()),
            ("at", whole),
            ("metadata", text),
        ]
    )
    return pyarrow.schema(
        [
            ("id", text),
            ("tenant_id", text),
            ("workspace_id", text),
            ("user_id", text),
            ("started_at", whole),
            ("last_active_at", whole),
            ("expires_at", whole),
            ("status", text),
            ("metadata", text),
            ("turns", pyarrow.list_(turn)),
        ]
    )


def _row_of(kept: _Kept) -> Row:
    session, turns = kept
    return {
        "id": session.id,
        "tenant_id": session.tenant_id,
        "workspace_id": session.workspace_id,
        "user_id": session.user_id,
        "started_at": session.started_at,
        "last_active_at": session.last_active_at,
        "expires_at": session.expires_at,
        "status": session.status,
        "metadata": written(session.metadata),
        "turns": [
            {**msgspec.structs.asdict(turn), "metadata": written(turn.metadata)} for turn in turns
        ],
    }


def _kept(row: Row) -> _Kept:
    turns = [
        Turn(**{**turn, "metadata": msgspec.json.decode(turn["metadata"])}) for turn in row["turns"]
    ]
    told: dict[str, Any] = {
        "turns": len(turns),
        "metadata": msgspec.json.decode(row["metadata"]),
        "archive_id": None,
        "restored_at": None,
    }
    return _Kept(AgentSession(**(row | told)), turns)


def turn_row(session: AgentSession, turn: Turn) -> Row:
    """What `add_turn` takes."""
    return {
        **msgspec.structs.asdict(turn),
        "session_id": session.id,
        "tenant_id": session.tenant_id,
        "user_id": session.user_id,
        "succeeded": None if turn.succeeded is None else int(turn.succeeded),
        "metadata": written(turn.metadata),
    }
