"""Small documents and the audit log on Redis."""

from collections.abc import Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import Decoder
from msgspec.structs import astuple

from penstock.model.audit import Entry
from penstock.store.contract import AuditFilter, Page, Record, Row
from penstock.store.redis.documents import page
from penstock.store.redis.errors import encoded
from penstock.store.redis.scripts import Scripts


class RedisRecords:
    """`Records` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get(self, kind: str, name: str) -> Record | None:
        """One record, or none."""
        found = await self._scripts.call("get_record", kind, name)
        return None if found is None else _record(kind, found)

    async def list(self, kind: str, *, after: str = "", limit: int = 1000) -> "list[Record]":
        """A page of a kind, by name."""
        asked = ("list_records", kind, after)
        return [_record(kind, row) for row in await page(self._scripts, *asked, limit=limit)]

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
        written = await self._scripts.call("put_record", kind, name, document, seen, stays)
        return None if written is None else _record(kind, written)

    async def remove(self, kind: str, name: str) -> bool:
        """Delete a record."""
        return bool(await self._scripts.call("remove_record", kind, name))


def row_of(field: bytes, value: bytes) -> Row:
    """A record as it is moved elsewhere, from what is kept under `records`."""
    kind, name = field.decode().split("\n", 1)
    revision, updated_at, expires_at, document = value.decode().split(" ", 3)
    ends = None if expires_at == "-" else int(expires_at)
    return kind, name, document, int(revision), int(updated_at), ends


def _record(kind: str, row: Sequence[Any]) -> Record:
    """A record from its fields, see `lua/parts/records.lua`."""
    name, revision, updated_at, expires_at, document = row
    return Record(
        kind=kind,
        name=name.decode(),
        document=document.decode(),
        revision=int(revision),
        updated_at=int(updated_at),
        expires_at=None if expires_at == b"-" else int(expires_at),
    )


LOOKS = 1_000
"""So many entries are read at once."""

Fields = tuple[int, int, str, str, str, str, str, str, str]

_fields: Decoder[Fields] = Decoder(Fields)
_NAMES = Entry.__struct_fields__


class RedisAuditLog:
    """`AuditLog` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def last(self) -> Entry | None:
        """The end of the chain."""
        [found] = await self._scripts.ask(("ZREVRANGE", self._key, 0, 0, "WITHSCORES"))
        return _entry(*found) if found else None

    async def append(self, entries: Sequence[Entry]) -> bool:
        """Add sealed entries where the chain ends."""
        if not entries:
            return True
        told = [encoded(astuple(entry)) for entry in entries]
        first = entries[0]
        return bool(await self._scripts.call("append_entries", first.seq, first.previous, *told))

    async def page(self, after: int, limit: int = 1000) -> list[Entry]:
        """Entries in the order of the chain."""
        return await _entries_after(self._scripts, after, limit)

    async def find(self, where: AuditFilter) -> list[Entry]:
        """A page of entries, newest first."""
        found: list[Entry] = []
        below = "+inf" if where.before is None else f"({where.before}"
        while len(found) < where.limit:
            asked = ("ZREVRANGEBYSCORE", self._key, below, "-inf", "WITHSCORES", "LIMIT", 0, LOOKS)
            entries = _entries(*await self._scripts.ask(asked))
            found += [entry for entry in entries if _fits(entry, where)]
            if len(entries) < LOOKS:
                break
            below = f"({entries[-1].seq}"
        return found[: where.limit]

    @property
    def _key(self) -> str:
        return self._scripts.prefix + "audit"


async def page_of_entries(scripts: Scripts, after: str | None, limit: int) -> Page:
    """Entries to be moved elsewhere."""
    entries = await _entries_after(scripts, int(after or 0), limit)
    rows: list[Row] = [astuple(entry) for entry in entries]
    return Page(rows, str(entries[-1].seq) if len(rows) == limit else None)


async def _entries_after(scripts: Scripts, after: int, limit: int) -> list[Entry]:
    asked = ("ZRANGEBYSCORE", scripts.prefix + "audit", f"({after}", "+inf", "WITHSCORES")
    return _entries(*await scripts.ask((*asked, "LIMIT", 0, limit)))


def _entries(found: Sequence[bytes]) -> list[Entry]:
    return [_entry(*pair) for pair in zip(found[::2], found[1::2], strict=True)]


def _entry(text: bytes, seq: bytes) -> Entry:
    try:
        fields: Any = _fields.decode(text)
    except DecodeError:  # edited by hand: shown as an entry that does not hold
        fields = (int(seq), 0, *[""] * (len(_NAMES) - 2))
    return Entry(**dict(zip(_NAMES, fields, strict=True)))


def _fits(entry: Entry, where: AuditFilter) -> bool:
    named = (
        (where.actor, entry.actor),
        (where.subject, entry.subject),
        (where.tenant_id, entry.tenant_id),
    )
    if any(wanted not in (None, found) for wanted, found in named):
        return False
    if where.action is not None and not f"{entry.action}.".startswith(f"{where.action}."):
        return False
    since = entry.at if where.since is None else where.since
    until = entry.at + 1 if where.until is None else where.until
    return since <= entry.at < until
