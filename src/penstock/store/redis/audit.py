"""The audit log on Redis."""

from collections.abc import Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import Decoder
from msgspec.structs import astuple

from penstock.model.audit import Entry
from penstock.store.contract import AuditFilter, Page, Row
from penstock.store.redis.courier import Courier
from penstock.store.redis.errors import encoded

LOOKS = 1_000
"""So many entries are read at once."""

Fields = tuple[int, int, str, str, str, str, str, str, str]

_fields: Decoder[Fields] = Decoder(Fields)
_NAMES = Entry.__struct_fields__


class RedisAuditLog:
    """`AuditLog` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    async def last(self) -> Entry | None:
        """The end of the chain."""
        [found] = await self._courier.ask(("ZREVRANGE", self._key, 0, 0, "WITHSCORES"))
        return _entry(*found) if found else None

    async def append(self, entries: Sequence[Entry]) -> bool:
        """Add sealed entries where the chain ends."""
        if not entries:
            return True
        told = [encoded(astuple(entry)) for entry in entries]
        first = entries[0]
        return bool(await self._courier.call("append_entries", first.seq, first.previous, *told))

    async def page(self, after: int, limit: int = 1000) -> list[Entry]:
        """Entries in the order of the chain."""
        return await _entries_after(self._courier, after, limit)

    async def find(self, where: AuditFilter) -> list[Entry]:
        """A page of entries, newest first."""
        found: list[Entry] = []
        below = "+inf" if where.before is None else f"({where.before}"
        while len(found) < where.limit:
            asked = ("ZREVRANGEBYSCORE", self._key, below, "-inf", "WITHSCORES", "LIMIT", 0, LOOKS)
            entries = _entries(*await self._courier.ask(asked))
            found += [entry for entry in entries if _fits(entry, where)]
            if len(entries) < LOOKS:
                break
            below = f"({entries[-1].seq}"
        return found[: where.limit]

    @property
    def _key(self) -> str:
        return self._courier.prefix + "audit"


async def page_of_entries(courier: Courier, after: str | None, limit: int) -> Page:
    """Entries to be moved elsewhere."""
    entries = await _entries_after(courier, int(after or 0), limit)
    rows: list[Row] = [astuple(entry) for entry in entries]
    return Page(rows, str(entries[-1].seq) if len(rows) == limit else None)


async def _entries_after(courier: Courier, after: int, limit: int) -> list[Entry]:
    asked = ("ZRANGEBYSCORE", courier.prefix + "audit", f"({after}", "+inf", "WITHSCORES")
    return _entries(*await courier.ask((*asked, "LIMIT", 0, limit)))


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
