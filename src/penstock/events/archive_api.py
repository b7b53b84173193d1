"""Old and unwanted events over HTTP: ask all of them in SQL, archive them, erase a session."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

from penstock.events import archive, job_archive
from penstock.events.archive import Archived
from penstock.events.background import Background, NoSuchWork, Tell, Work
from penstock.events.event import Session
from penstock.events.query import MOST_ROWS, plain, query
from penstock.extension import Request
from penstock.model.clock import LATEST, iso, milliseconds
from penstock.operate.actor import Operator
from penstock.operate.erase import Erased

QUERY_SECONDS = 20.0
"""A question that takes longer is for the terminal: who asks over HTTP waits no longer."""
SHOWN = 1_000


class Asking(Struct, kw_only=True, forbid_unknown_fields=True):
    """A question over all events, live and archived, and over archived jobs."""

    sql: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=100_000,
            description="One SELECT over `events`, `jobs`, `job_executions` and `job_logs`.",
            examples=["SELECT event_type, count(*) FROM events GROUP BY 1"],
        ),
    ]
    since: Annotated[datetime | None, Meta(description="Look at this time and later.")] = None
    until: Annotated[datetime | None, Meta(description="Look before this time.")] = None
    tenant: Annotated[str | None, Meta(description="Look at this tenant alone.")] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 1_000


class AnswerDocument(Struct, kw_only=True):
    """The rows of an answer."""

    columns: list[str]
    rows: list[list[Any]]
    more: Annotated[bool, Meta(description="Whether there are more than were asked for.")]


class WorkDocument(Struct, kw_only=True):
    """Work that goes on in the server, and how far it is."""

    name: Annotated[str, Meta(examples=["rebuild:totals"])]
    state: Annotated[str, Meta(description="`running`, `done`, `failed` or `stopped`.")]
    done: int
    total: Annotated[int | None, Meta(description="About how much there is, if that is known.")]
    started_at: datetime
    updated_at: datetime
    error: str | None


class Archiving(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is archived."""

    before: Annotated[
        datetime | None,
        Meta(description="Whole months before this time; else as the settings say."),
    ] = None
    jobs: Annotated[bool, Meta(description="Ended jobs instead of events.")] = False


MaybeArchiving = Archiving | None


class ArchivedDocument(Struct, kw_only=True):
    """A file of the archive."""

    file: str
    subject: Annotated[str, Meta(description="`events` or `jobs`.")]
    state: str
    first_at: datetime
    last_at: datetime
    last_sequence: Annotated[int, Meta(description="The last of its events; 0 for jobs.")]
    rows: int
    erased: int
    size: int
    sha256: str
    made_at: datetime


class ArchiveDocument(Struct, kw_only=True):
    """The latest files of the archive, and the work that was asked for."""

    files: list[ArchivedDocument]
    work: list[WorkDocument]


class ErasedSession(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which session is erased."""

    session_id: Annotated[str, Meta(min_length=1)]
    platform: str = ""
    tenant_id: str = ""


class ErasedDocument(Struct, kw_only=True):
    """How much was erased, by what it was, and what is left to do for the last of its bytes."""

    erased: Annotated[dict[str, int], Meta(examples=[{"events": 12}])]
    remarks: list[str]


async def query_events(request: Request) -> AnswerDocument:
    """Answer a question in SQL over all events and archived jobs; it can change nothing.

    One that takes more than 20 seconds is refused: narrow it by times and tenant.
    """
    asked: Asking = request.body
    answer = await query(
        request.app,
        asked.sql,
        since=0 if asked.since is None else milliseconds(asked.since),
        until=LATEST + 1 if asked.until is None else milliseconds(asked.until),
        tenant=asked.tenant,
        limit=asked.limit,
        seconds=QUERY_SECONDS,
    )
    return AnswerDocument(columns=answer.columns, rows=plain(answer), more=answer.more)


async def archive_events(request: Request) -> dict[str, Any]:
    """Begin to move old months of events, or of ended jobs, to the archive, in the background.

    `GET /api/event-archive` says how far it is. One that goes on already is refused.
    """
    wanted: Archiving = request.body or Archiving()
    before = None if wanted.before is None else milliseconds(wanted.before)
    app, actor = request.app, Operator(request.app, request.actor).actor
    if wanted.jobs:
        job_archive.ends_of(app, before)
        work = partial(job_archive.archive_jobs, app, before, actor=actor)
    else:
        archive.until_of(app, before)
        work = partial(archive.archive, app, before, actor=actor)

    async def run(tell: Tell) -> int:
        done = 0

        def show(_: str, rows: int) -> None:
            nonlocal done
            done += rows
            tell(done, None)

        await work(show=show)
        return done

    name = ARCHIVES[job_archive.JOBS if wanted.jobs else archive.EVENTS]
    return work_document(await background(request).start(name, run))


ARCHIVES = {archive.EVENTS: "archive:events", job_archive.JOBS: "archive:jobs"}


async def read_archive(request: Request) -> dict[str, Any]:
    """The latest files of the archive, and how far the work is that was asked for."""
    found = [*await archive.files(request.app), *await archive.files(request.app, "leaving")]
    found.sort(key=lambda file: (file.made_at, file.file))
    work = []
    for name in ARCHIVES.values():
        try:
            work.append(work_document(await background(request).get(name)))
        except NoSuchWork:
            continue
    return {"files": [_file_document(file) for file in found[-SHOWN:]], "work": work}


async def erase_session(request: Request) -> ErasedDocument:
    """Erase a session: its events wherever they are, what was derived from them, and their jobs.

    Asked for again, it goes on where it broke off. Consumers must be known to the server.
    """
    whose: ErasedSession = request.body
    session = Session(whose.tenant_id, whose.platform, whose.session_id)
    actor = Operator(request.app, request.actor).actor
    erased: Erased = await request.app.events.erase(session, actor=actor)
    return ErasedDocument(erased=erased.parts, remarks=erased.remarks)


def background(request: Request) -> Background:
    """What goes on in this server."""
    found: Background = request.app.events.background
    return found


def work_document(work: Work) -> dict[str, Any]:
    """Some work as a script wants to read it."""
    return {
        "name": work.name,
        "state": work.state,
        "done": work.done,
        "total": work.total,
        "started_at": iso(work.started_at),
        "updated_at": iso(work.updated_at),
        "error": work.error,
    }


def _file_document(file: Archived) -> dict[str, Any]:
    times = {name: iso(getattr(file, name)) for name in ("first_at", "last_at", "made_at")}
    return file._asdict() | times
