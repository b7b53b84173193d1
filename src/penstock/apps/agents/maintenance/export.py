"""All that is there of a tenant, or of a person, as one archive that any tool can read.

It is a ZIP file of documents, one JSON object a line, with a manifest that counts them and holds
the checksum of every file. What is exported twice from the same state is the same, byte by byte.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from penstock.apps.agents.files import folder_of, replacing
from penstock.apps.agents.maintenance.exports import Begun, Exported
from penstock.apps.agents.maintenance.subject import Subject, jobs_of, tables_of
from penstock.operate.documents import dead_document, document

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

FORMAT = "penstock-data-export/1"
PAGE = 500
ELSEWHERE = frozenset({"events_log"})
"""Tables whose rows are exported as what they stand for."""
SECRET = ("secret", "sealed", "password")
"""Columns whose names end so are left out."""

Documents = AsyncIterator[list[dict[str, Any]]]


class Named(Struct, frozen=True, rename="camel"):
    """A file of an archive, as its manifest names it."""

    rows: int
    bytes: int
    sha256: str


class Bundle:
    """A ZIP file in the making."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.files: dict[str, Named] = {}
        self.left_out: dict[str, list[str]] = {}

    async def add(self, name: str, pages: Documents) -> None:
        """Write documents, one a line; none, and there is no such file."""
        hashed, rows, size = sha256(), 0, 0
        page = await anext(pages, None)
        if page is None:
            return
        with self._archive.open(_entry(name), "w", force_zip64=True) as file:
            while page is not None:
                data = b"".join(_encoder.encode(each) + b"\n" for each in page)
                hashed.update(data)
                await asyncio.to_thread(file.write, data)
                rows, size = rows + len(page), size + len(data)
                page = await anext(pages, None)
        self.files[name] = Named(rows, size, hashed.hexdigest())

    def end(self, told: Mapping[str, Any]) -> None:
        """Write the manifest."""
        manifest = {**told, "files": self.files, "leftOut": self.left_out}
        self._archive.writestr(_entry("manifest.json"), _encoder.encode(manifest))


_encoder = msgspec.json.Encoder(order="deterministic")


def _entry(name: str) -> ZipInfo:
    """Without the time of day, so that the same is written the same."""
    entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


async def write_data(
    app: "Penstock", begun: Begun, subject: Subject, *, own_job: str, at: int
) -> Exported:
    """Write the archive, but for what is about its own job."""
    with replacing(begun.path) as path, ZipFile(path, "w") as archive:
        bundle = Bundle(archive)
        await bundle.add("jobs.jsonl", _jobs(app, subject, own_job))
        if subject.person is None:
            await bundle.add("schedules.jsonl", _schedules(app, subject))
        async for table, where in tables_of(app, subject):
            if table.name not in ELSEWHERE:
                pages = _rows(app, bundle, table, where, begun.id)
                await bundle.add(f"tables/{table.name}.jsonl", pages)
        if "events" in await app.table_store("agents").versions():
            await bundle.add("events.jsonl", _events(app, subject))
            await bundle.add("archived_events.jsonl", _archived_events(app, subject))
            await bundle.add("archived_jobs.jsonl", _archived_jobs(app, subject))
        await bundle.add("archived_sessions.jsonl", _archived_sessions(app, subject))
        bundle.end(
            {
                "format": FORMAT,
                "tenantId": subject.tenant,
                "userId": subject.person,
                "createdAt": at,
                "exportId": begun.id,
            }
        )
    hashed, size = await asyncio.to_thread(_measured, begun.path)
    contents = {name: named.rows for name, named in sorted(bundle.files.items())}
    return Exported(sha256=hashed, bytes=size, contents=contents)


def _measured(path: Any) -> tuple[str, int]:
    hashed = sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            hashed.update(data)
        return hashed.hexdigest(), file.tell()


async def _jobs(app: "Penstock", subject: Subject, own_job: str) -> Documents:
    """Jobs with their executions, log lines and dead letters."""
    async for jobs in jobs_of(app, subject):
        page = []
        for job in jobs:
            if job.id == own_job:
                continue
            letter = await app.store.dead.get(job.id)
            page.append(
                {
                    "job": document(job),
                    "executions": [document(each) for each in await app.executions(job.id)],
                    "logs": [to_builtins(each) for each in await app.logs(job.id)],
                    "deadLetter": None if letter is None else dead_document(letter),
                }
            )
        if page:
            yield page


async def _schedules(app: "Penstock", subject: Subject) -> Documents:
    found = await app.store.schedules.known(tenant_id=subject.tenant)
    if found:
        yield [to_builtins(each) for each in sorted(found, key=lambda each: each.name)]


async def _rows(
    app: "Penstock", bundle: Bundle, table: Any, where: Mapping[str, str], export_id: str
) -> Documents:
    """Rows as they are, bytes in base64, but for what is secret."""
    store = app.table_store("agents")
    secret = [name for name in await store.columns(table) if name.endswith(SECRET)]
    after: list[Any] | None = None
    while rows := await store.page(table, after, PAGE, where):
        after = [rows[-1][column] for column in table.key]
        page = [
            {name: _plain(value) for name, value in row.items() if name not in secret}
            for row in rows
            if not (table.name == "agents_exports" and row["id"] == export_id)
        ]
        if page:
            if secret:
                bundle.left_out[table.name] = secret
            yield page


def _plain(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


async def _events(app: "Penstock", subject: Subject) -> Documents:
    from penstock.events.log import EventFilter

    after = 0
    while found := await app.events.find(
        EventFilter(tenant=subject.tenant, after=after, limit=PAGE)
    ):
        after = found[-1].sequence
        page = [asdict(each) for each in found if subject.means(each.person)]
        if page:
            yield page


async def _archived_events(app: "Penstock", subject: Subject) -> Documents:
    from penstock.events import archive

    async for path in _archived(app, archive.EVENTS):
        rows = await _parquet(path, subject, "person")
        if rows:
            yield rows


async def _archived_jobs(app: "Penstock", subject: Subject) -> Documents:
    from penstock.events import job_archive

    async for path in _archived(app, job_archive.JOBS):
        rows = await _parquet(path, subject, "created_by")
        if rows:
            yield rows


async def _archived(app: "Penstock", about: str) -> AsyncIterator[Any]:
    """The files of the archive of events, or of jobs."""
    from penstock.events import archive

    listed = [file for file in await archive.files(app) if file.subject == about]
    for path in archive.paths_of(app, listed) if listed else ():
        yield path


async def _archived_sessions(app: "Penstock", subject: Subject) -> Documents:
    asked = {"tenant": subject.tenant}
    for (file,) in await app.read(lambda tx: tx.agents.rows("archived_files", asked)):
        found = await _parquet(folder_of(app) / str(file), subject, "user_id")
        if found:
            yield found


async def _parquet(path: Any, subject: Subject, person: str) -> list[dict[str, Any]]:
    from penstock.events.parquet import read

    wanted: list[tuple[str, str, Any]] = []
    if subject.tenant is not None:
        wanted.append(("tenant_id", "=", subject.tenant))
    if subject.person is not None:
        wanted.append((person, "=", subject.person))
    table = await asyncio.to_thread(read, path, wanted)
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]
