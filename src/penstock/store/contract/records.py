"""Small documents that belong to an installation: who may enter, which alerts stand."""

from collections.abc import AsyncGenerator
from typing import Protocol

from msgspec import Struct

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
