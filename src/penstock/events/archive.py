"""The archive: old events leave the log for Parquet files, and are still read from there.

A file holds a part of one month, in the order of its sessions. It is read back and compared before
anything is deleted, and the rows leave the log in the commit that makes the file part of the
archive: an event is in one of them, never in both or in neither.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.events.codec import Codec, UnknownDictionary, unpacked
from penstock.events.event import Event, Session
from penstock.events.log import learn
from penstock.events.parquet import (
    COLUMNS,
    ArchiveDiffers,
    NoArchive,
    Row,
    event_of,
    read,
    table_of,
    write,
)
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.ids import new_id
from penstock.operate.actor import PROGRAM, Actor
from penstock.store.contract.metrics import DAY_MS

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

PAGE = 5_000
PART = 50_000
"""No file has more events, so that one is sorted, compared and erased from in memory."""
ABANDONED_MS = 3_600_000

EVENTS = "events"

Show = Callable[[str, int], None]
"""Hears which file was written, and of how many events."""


class NotConsumed(PenstockError):
    """Events that a consumer has not come past yet."""

    def __init__(self, consumer: str, month: str) -> None:
        self.consumer = consumer
        self.month = month
        super().__init__(
            f"Events of {month} cannot be archived before consumer {consumer!r} has come past "
            "them; one that is gone is forgotten with `penstock events forget`."
        )


class Archived(NamedTuple):
    """A file of the archive; times are those of its events, in UTC milliseconds."""

    file: str
    subject: str
    state: str
    first_at: int
    last_at: int
    last_sequence: int
    rows: int
    erased: int
    size: int
    sha256: str
    made_at: int

    def spans(self, moment: int) -> bool:
        """Whether an event of this time may be in it."""
        return self.first_at <= moment <= self.last_at


class Changed(Exception):
    """What goes into a file has changed since it was read."""


class Nothing(Exception):
    """There is nothing to put into a file."""


async def archive(
    app: "Penstock",
    before: int | None = None,
    *,
    show: Show | None = None,
    actor: Actor = PROGRAM,
) -> list[Archived]:
    """Archive the whole months before a time; without one, those of the setting archive_days."""
    until = until_of(app, before)
    async with actor.doing("events.archive", EVENTS):
        await sweep(app)
        return await _archive_until(app, folder_of(app), until, show)


def until_of(app: "Penstock", before: int | None = None) -> int:
    """When the first month begins that stays; refused if neither a time nor a setting says so."""
    folder_of(app)
    now = app.store.clock.now()
    if before is None:
        days: int = app.extensions.settings(EVENTS).archive_days
        if not days:
            raise InvalidOption("before", before, "a time, or events.archive_days above 0")
        before = now - days * DAY_MS
    return month_of(min(before, now))[0]


async def _archive_until(
    app: "Penstock", folder: Path, until: int, show: Show | None
) -> list[Archived]:
    made: list[Archived] = []
    since = 0
    while (first := await _first(app, since, until)) is not None:
        begins, ends = month_of(first)
        while (part := await _archive_part(app, folder, begins, ends)) is not None:
            made.append(part)
            if show is not None:
                show(part.file, part.rows)
        since = ends
        await _drop_month(app, begins)
    return made


async def keep_up(app: "Penstock") -> None:
    """Archive what has become old enough: a pass of the leader, if it is told to."""
    settings = app.extensions.settings("events")
    if settings.archive_days:
        await archive(app)
    elif settings.archive:
        await sweep(app)


async def files(app: "Penstock", state: str = "whole") -> list[Archived]:
    """The files of the archive, the oldest events first."""
    rows = await app.read(lambda tx: tx.events.queries.rows("archives", (state,)))
    return [Archived(*row) for row in rows]


async def events_of(
    app: "Penstock", session: Session, types: frozenset[str] | None, after: int, until: int
) -> list[Event]:
    """The archived events of a session, in their order."""
    wanted = [
        ("session_id", "=", session.session_id),
        ("tenant_id", "=", session.tenant_id),
        ("platform", "=", session.platform),
        ("sequence", ">", after),
        ("sequence", "<=", until),
        ("codec", "!=", Codec.ERASED.value),
    ]
    found = sorted(await _found(app, wanted), key=lambda event: event.sequence)
    return [event for event in found if types is None or event.event_type in types]


async def _found(app: "Penstock", wanted: Sequence[tuple[str, str, Any]]) -> list[Event]:
    listed = await paths(app)
    try:
        tables = [await asyncio.to_thread(read, path, wanted) for path in listed]
    except NoArchive:
        if await paths(app) == listed:
            raise
        return await _found(app, wanted)  # one was written anew meanwhile
    return [event_of(row) for table in tables for row in table.to_pylist()]


async def sessions(app: "Penstock") -> AsyncIterator[Session]:
    """All sessions of the archive, each at least once."""
    columns = ["tenant_id", "platform", "session_id"]
    for path in await paths(app):
        wanted = [("codec", "!=", Codec.ERASED.value)]
        table = await asyncio.to_thread(read, path, wanted, columns)
        for row in table.group_by(columns).aggregate([]).to_pylist():
            yield Session(**row)


class Replacing(Protocol):
    """Something that leaves other rows in the place of some."""

    page: int

    def means(self, row: Row) -> bool:
        """Whether a row is to be replaced."""
        ...

    def found(self, row: Row) -> Any:
        """A row as `record` takes it."""
        ...

    def replace(self, row: Row) -> None:
        """Change a row."""
        ...

    def record(self, tx: Any, rows: Sequence[Any]) -> None:
        """Have all that knows some events look again."""
        ...


async def erase(app: "Penstock", eraser: Replacing) -> int:
    """Write those files anew that hold events which are to be replaced; how many events."""
    erased = 0
    for file in await files(app):
        if file.subject == EVENTS:
            erased += await _erase_from(app, file, eraser)
    # The store knows of a file before what goes into it is read: that may have been too early.
    await run(app, "give_up_writing", ())
    await sweep(app)
    return erased


async def sweep(app: "Penstock") -> None:
    """Delete files that are no part of the archive: replaced ones, and those of broken attempts."""
    abandoned = app.store.clock.now() - ABANDONED_MS
    await run(app, "give_up_broken", (abandoned,))
    for file in await files(app, "going"):
        await asyncio.to_thread(path_of(folder_of(app), file.file).unlink, missing_ok=True)
        await run(app, "forget_archive", (file.file, abandoned))


def month_of(moment: int) -> tuple[int, int]:
    """When the month of a time begins, and when the next one does."""
    at = datetime.fromtimestamp(moment / 1000, UTC)
    following = (at.year + 1, 1) if at.month == 12 else (at.year, at.month + 1)
    begins, ends = (datetime(*month, 1, tzinfo=UTC) for month in ((at.year, at.month), following))
    return round(begins.timestamp() * 1000), round(ends.timestamp() * 1000)


def month_name(moment: int) -> str:
    """The month of a time, as files are called by it."""
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m}"


async def _first(app: "Penstock", since: int, until: int) -> int | None:
    """The time of the first event that may be archived."""
    below = await app.events.latest()
    asked = {"since": since, "until": until, "below": below}
    found = await app.read(lambda tx: tx.events.queries.value("first_to_archive", asked))
    return None if found is None else int(found)


async def _archive_part(app: "Penstock", folder: Path, begins: int, ends: int) -> Archived | None:
    """Archive the first events of a month, as many as one file holds; None if there are none."""
    month = month_name(begins)
    while True:
        try:
            async with new_file(app, folder, month, EVENTS) as file:
                below = int(await app.events.latest())
                rows = await _rows(app, begins, ends, below)
                if not rows:
                    raise Nothing
                await _refuse_unread(app, rows, begins)
                table = table_of(sorted(rows, key=_by_session))
                told = await write_file(folder, file, table, _part(rows, below))
                await app.transact(partial(_leave, told=told))
        except Changed:
            continue
        except Nothing:
            return None
        found = [each for each in await files(app) if each.file == file]
        if found:  # else somebody has written it anew already
            return found[0]


@asynccontextmanager
async def new_file(
    app: "Penstock", folder: Path, month: str, subject: str
) -> AsyncGenerator[str, None]:
    """The name of a file that the store knows before anything is read that goes into it."""
    file = f"{month}-{new_id()}.parquet"
    await run(app, "begin_archive", (file, subject, app.store.clock.now()))
    try:
        yield file
    except (
        Changed,
        Nothing,
        ArchiveDiffers,
        NoArchive,
        NotConsumed,
    ):  # it is no part of the archive
        await asyncio.to_thread(path_of(folder, file).unlink, missing_ok=True)
        await run(app, "forget_unfinished", (file,))
        raise


def _part(rows: Sequence[Row], below: int) -> dict[str, Any]:
    """What tells a part of the log from the rest of it, and whether it has changed."""
    first, last = rows[0], rows[-1]
    return {
        "first_at": first["timestamp"],
        "first_sequence": first["sequence"],
        "last_at": last["timestamp"],
        "last_in_part": last["sequence"],
        "below": below,
        "sequences": sum(row["sequence"] for row in rows),
        **_counted(rows),
    }


def _counted(rows: Sequence[Row]) -> dict[str, int]:
    return {
        "row_count": len(rows),
        "erased_count": sum(row["codec"] == Codec.ERASED for row in rows),
        "last_sequence": max(row["sequence"] for row in rows),
    }


def _leave(tx: Any, told: Mapping[str, Any]) -> None:
    """Delete a part from the log, and have its file be part of the archive."""
    queries = tx.events.queries
    tx.events.hold()  # nobody erases, appends or archives what is counted here
    asked = {**told, "last_sequence": told["last_in_part"]}
    count, sequences, erased = map(int, queries.row("part_of_log", asked))
    if (count, sequences, erased) != (told["row_count"], told["sequences"], told["erased_count"]):
        raise Changed
    if queries.run("delete_part", asked) != told["row_count"]:
        raise Changed
    finish(queries, told)


async def run(app: "Penstock", name: str, bindings: tuple[Any, ...]) -> int:
    """Run a named statement in a commit of its own; how many rows it was about."""

    def work(tx: Any) -> int:
        return int(tx.events.queries.run(name, bindings))

    return await app.transact(work)


def finish(queries: Any, told: Mapping[str, Any], state: str = "whole") -> None:
    """Have a file be part of the archive, unless it was given up meanwhile."""
    if not queries.run("finish_archive", {**told, "state": state}):
        raise Changed


async def _rows(app: "Penstock", begins: int, ends: int, below: int) -> list[Row]:
    """The first events of a month in the log, decoded."""
    found: list[Row] = []
    after_at, after_sequence = begins, 0
    while len(found) < PART:
        asked = {
            "after_at": after_at,
            "after_sequence": after_sequence,
            "until": ends,
            "below": below,
            "limit": min(PAGE, PART - len(found)),
        }
        page = await app.read(partial(decoded, name="to_archive", asked=asked))
        found += page
        if len(page) < asked["limit"]:
            break
        after_at, after_sequence = page[-1]["timestamp"], page[-1]["sequence"]
    return found


def decoded(tx: Any, name: str, asked: Mapping[str, Any]) -> list[Row]:
    """What a query finds in the log, as rows of the archive."""
    queries = tx.events.queries
    found = []
    for *columns, data in queries.rows(name, dict(asked)):
        body = "" if columns[-1] == Codec.ERASED else _text(queries, columns[-1], data)
        found.append(dict(zip(COLUMNS, (*columns, body), strict=True)))
    return found


def _text(queries: Any, codec: str, data: bytes) -> str:
    try:
        return unpacked(data, codec).decode()
    except UnknownDictionary as unknown:
        learn(queries, unknown.number)
        return unpacked(data, codec).decode()


async def _refuse_unread(app: "Penstock", rows: Sequence[Row], begins: int) -> None:
    slowest = await app.read(lambda tx: tx.events.queries.row("slowest"))
    if slowest is not None and max(row["sequence"] for row in rows) > int(slowest[1]):
        month = f"{datetime.fromtimestamp(begins / 1000, UTC):%B %Y}"
        raise NotConsumed(str(slowest[0]), month)


async def write_file(
    folder: Path, file: str, table: Any, told: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a file that the store knows of, and read it back; what there is to say of it."""
    written = await asyncio.to_thread(write, path_of(folder, file), table)
    return {"file": file, **told, **written}


async def _erase_from(app: "Penstock", file: Archived, eraser: Replacing) -> int:
    """Write a file anew with other rows in the place of events; how many."""
    folder = folder_of(app)
    try:
        async with new_file(app, folder, file.file[:7], EVENTS) as name:
            table = await asyncio.to_thread(read, path_of(folder, file.file))
            rows = table.to_pylist()
            gone = [row for row in rows if row["codec"] != Codec.ERASED and eraser.means(row)]
            if not gone:
                raise Nothing
            found = [eraser.found(row) for row in gone]
            for row in gone:
                eraser.replace(row)
            told = {"first_at": file.first_at, "last_at": file.last_at, **_counted(rows)}
            written = await write_file(folder, name, table_of(rows), told)

            def work(tx: Any) -> None:
                tx.events.hold()
                if not tx.events.queries.run("give_up_archive", (file.file, "whole")):
                    raise Changed
                finish(tx.events.queries, written)
                for begin in range(0, len(found), eraser.page):
                    eraser.record(tx, found[begin : begin + eraser.page])

            await app.transact(work)
    except Nothing:
        return 0
    except (Changed, NoArchive) as error:  # somebody else erases from it, too
        current = await files(app)
        if isinstance(error, NoArchive) and file in current:
            raise
        return sum([await _erase_from(app, each, eraser) for each in current if _same(each, file)])
    return len(found)


def _same(one: Archived, other: Archived) -> bool:
    """Whether two files are of the same part of the log."""
    span = (one.first_at, one.last_at, one.rows, one.last_sequence)
    return span == (other.first_at, other.last_at, other.rows, other.last_sequence)


async def _drop_month(app: "Penstock", begins: int) -> None:
    """Drop the table of a month that has become empty, where a month has one."""
    if _has_months(app):
        await app.transact(lambda tx: tx.events.queries.value("drop_month", (begins,)))


AHEAD = range(4)
"""This month and some that follow get their tables before their events come."""


async def make_months(app: "Penstock") -> int:
    """Make the tables of this month and the next ones where a month has one; how many were new."""
    if not _has_months(app):
        return 0

    def work(tx: Any) -> int:
        made = [tx.events.queries.value("make_month", (ahead,)) for ahead in AHEAD]
        return sum(map(bool, made))

    return await app.transact(work)


def _has_months(app: "Penstock") -> bool:
    """Whether the tables are where the log has one for each month."""
    tables = (app.beside or app.store).tables
    return tables is not None and tables.dialect == "postgres"


def folder_of(app: "Penstock") -> Path:
    """The folder of the archive, or NoArchive."""
    named: str = app.extensions.settings(EVENTS).archive
    if not named:
        raise NoArchive("", "yet")
    return Path(named).expanduser()


def path_of(folder: Path, file: str) -> Path:
    """Where a file of the archive is."""
    return folder / file[:4] / file


async def paths(app: "Penstock") -> list[Path]:
    """Where the archived events are."""
    return paths_of(app, [file for file in await files(app) if file.subject == EVENTS])


def paths_of(app: "Penstock", listed: Sequence[Archived]) -> list[Path]:
    """Where files of the archive are; without any, no folder is needed."""
    return [path_of(folder_of(app), file.file) for file in listed]


def _by_session(row: Row) -> tuple[str, str, str, int]:
    return row["session_id"], row["tenant_id"], row["platform"], row["sequence"]
