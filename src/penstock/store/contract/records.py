"""Small documents that belong to an installation, and its audit log."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from msgspec import Struct

from penstock.model.audit import Entry

AT_ONCE = 1_000


class Record(Struct, frozen=True, kw_only=True):
    """A JSON document under a kind and a name; its revision grows with every change."""

    kind: str
    name: str
    document: str
    revision: int
    updated_at: int
    expires_at: int | None = None


class Records(Protocol):
    """Read and written one at a time, never on the way of a job. Expired ones are not there."""

    async def get(self, kind: str, name: str) -> Record | None:
        """One record, or none."""
        ...

    async def list(self, kind: str, *, after: str = "", limit: int = 1000) -> "list[Record]":
        """A page of a kind, by name."""
        ...

    async def put(
        self,
        kind: str,
        name: str,
        document: str,
        *,
        revision: int | None = None,
        expires_in_ms: int | None = None,
    ) -> Record | None:
        """Create or replace a record, for as long as said.

        With a revision only if it still has that one, 0 meaning that there is none: otherwise
        nothing is written, and the answer is None.
        """
        ...

    async def remove(self, kind: str, name: str) -> bool:
        """Delete a record; whether there was one."""
        ...


async def every(records: Records, kind: str) -> AsyncGenerator[Record]:
    """All records of a kind, by name, however many there are."""
    page = await records.list(kind, limit=AT_ONCE)
    while page:
        for record in page:
            yield record
        whole = len(page) == AT_ONCE
        page = await records.list(kind, after=page[-1].name, limit=AT_ONCE) if whole else []


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Which entries to list, newest first; `before` is the seq to continue below.

    `action` also finds what is named below it: `job` finds `job.cancel`. Times are UTC
    milliseconds, `until` not included.
    """

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    tenant_id: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None
    limit: int = 50


class AuditLog(Protocol):
    """Entries in one chain; `penstock.model.audit` seals and checks them."""

    async def last(self) -> Entry | None:
        """The end of the chain; none while it is empty."""
        ...

    async def append(self, entries: Sequence[Entry]) -> bool:
        """Add sealed entries, all of them or none.

        False, and nothing is written, when the first does not continue the chain as it now ends:
        somebody else was quicker, and the entries must be sealed again.
        """
        ...

    async def page(self, after: int, limit: int = 1000) -> list[Entry]:
        """Entries in the order of the chain, from the one behind that seq on."""
        ...

    async def find(self, where: AuditFilter) -> list[Entry]:
        """A page of entries, newest first."""
        ...
