"""Whose data is exported or deleted: a tenant's, a person's, or a person's within a tenant."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.extension import Erasing, Table
from penstock.model.errors import InvalidOption
from penstock.model.options import check_text
from penstock.store.contract import JobFilter

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.model.job import Job

PAGE = 500
NAMED_BY = ("userId", "user_id")
"""The arguments that say which user a job is about."""


def check_whose(option: str, name: str | None) -> None:
    """Refuse a name that is none: an empty one would mean all that there is of the other."""
    if name is not None:
        check_text(option, name)
        if not name:
            raise InvalidOption(option, name, "a name, or left out")


class Subject(Struct, frozen=True, kw_only=True):
    """Whose; at least one of them is named."""

    tenant: str | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        check_whose("tenant", self.tenant)
        check_whose("person", self.person)

    @property
    def kind(self) -> str:
        """In a word."""
        return "tenant" if self.person is None else "person"

    @property
    def text(self) -> str:
        """All of it, to be hashed."""
        return "\n".join((self.kind, self.tenant or "", self.person or ""))

    @property
    def erasing(self) -> Erasing:
        """As extensions are asked to erase it."""
        return Erasing(tenant=self.tenant, person=self.person)

    def means(self, person: str | None) -> bool:
        """Whether something of a person, in this tenant, is part of it."""
        return self.person is None or self.person == person

    def is_named_in(self, job: Mapping[str, Any]) -> bool:
        """Whether an archived job is about the person, in this tenant."""
        if self.person is None or self.tenant not in (None, job["tenant_id"]):
            return False
        told = decode(job["payload"] or "null")
        return isinstance(told, dict) and self.person in [told.get(name) for name in NAMED_BY]


def where_of(table: Table, subject: Subject) -> dict[str, str] | None:
    """Which rows of a table are theirs; None if it does not say whose its rows are."""
    told = ((table.tenant, subject.tenant), (table.person, subject.person))
    where = {column: value for column, value in told if value is not None}
    return None if None in where else {str(column): value for column, value in where.items()}


async def tables_of(
    app: "Penstock", subject: Subject
) -> AsyncIterator[tuple[Table, dict[str, str]]]:
    """The tables of extensions that may hold something of a subject, and where."""
    store = app.table_store("agents")
    for name in sorted(await store.versions()):
        extension = app.extensions.find(name)
        for table in extension.tables.tables if extension and extension.tables else ():
            where = where_of(table, subject)
            if where and await store.columns(table):
                yield table, where


async def jobs_of(app: "Penstock", subject: Subject) -> "AsyncIterator[list[Job]]":
    """The jobs of a tenant; of a person, those that they made and those that are about them."""
    seen: set[str] = set()
    for narrowed in _filters(subject):
        before: str | None = None
        while True:
            page = await app.store.reader.search(replace(narrowed, before=before))
            fresh = [job for job in page.jobs if job.id not in seen]
            seen |= {job.id for job in fresh} if subject.person is not None else set()
            if fresh:
                yield fresh
            before = page.before
            if before is None:
                break


def _filters(subject: Subject) -> list[JobFilter]:
    whole = JobFilter(tenant_id=subject.tenant, limit=PAGE)
    if subject.person is None:
        return [whole]
    named = encode(subject.person).decode()
    about = [replace(whole, payload=((name, named),)) for name in NAMED_BY]
    return [replace(whole, created_by=subject.person), *about]
