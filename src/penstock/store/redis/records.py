"""Small documents on Redis."""

from collections.abc import Sequence
from typing import Any

from penstock.store.contract import Record, Row
from penstock.store.redis.courier import Courier
from penstock.store.redis.paging import page


class RedisRecords:
    """`Records` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    async def get(self, kind: str, name: str) -> Record | None:
        """One record, or none."""
        found = await self._courier.call("get_record", kind, name)
        return None if found is None else _record(kind, found)

    async def list(self, kind: str, *, after: str = "", limit: int = 1000) -> "list[Record]":
        """A page of a kind, by name."""
        asked = ("list_records", kind, after)
        return [_record(kind, row) for row in await page(self._courier, *asked, limit=limit)]

    async def put(
        self,
        kind: str,
        name: str,
        document: str,
        *,
        revision: int | None = None,
        expires_in_ms: int | None = None,
    ) -> Record | None:
        """Create or replace a record, if it still has the revision that is named."""
        seen = "" if revision is None else revision
        stays = "" if expires_in_ms is None else expires_in_ms
        written = await self._courier.call("put_record", kind, name, document, seen, stays)
        return None if written is None else _record(kind, written)

    async def remove(self, kind: str, name: str) -> bool:
        """Delete a record."""
        return bool(await self._courier.call("remove_record", kind, name))


def row_of(field: bytes, value: bytes) -> Row:
    """A record as it is moved elsewhere, from what is kept under `records`."""
    kind, name = field.decode().split("\n", 1)
    revision, updated_at, expires_at, document = value.decode().split(" ", 3)
    ends = None if expires_at == "-" else int(expires_at)
    return kind, name, document, int(revision), int(updated_at), ends


def _record(kind: str, row: Sequence[Any]) -> Record:
    """A record from its fields, see `lua/records.lua`."""
    name, revision, updated_at, expires_at, document = row
    return Record(
        kind=kind,
        name=name.decode(),
        document=document.decode(),
        revision=int(revision),
        updated_at=int(updated_at),
        expires_at=None if expires_at == b"-" else int(expires_at),
    )
