"""Small documents and the audit log in SQL."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict, astuple

from penstock.model.audit import Entry
from penstock.store.contract import AuditFilter, Record
from penstock.store.relational.transaction import Database, Transaction


class RelationalRecords:
    """`Records` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, kind: str, name: str) -> Record | None:
        """One record, or none."""
        return await self._db.read(lambda tx: get(tx, kind, name))

    async def list(self, kind: str, *, after: str = "", limit: int = 1000) -> "list[Record]":
        """A page of a kind, by name."""
        row = {"kind": kind, "after": after, "limit": limit}
        return await self._db.read(
            lambda tx: [_record(*found) for found in tx.rows("records", row | {"now": tx.now})]
        )

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
        return await self._db.write(
            lambda tx: put(tx, kind, name, document, revision, expires_in_ms)
        )

    async def remove(self, kind: str, name: str) -> bool:
        """Delete a record."""
        row = {"kind": kind, "name": name}

        def remove(tx: Transaction) -> bool:
            known = get(tx, kind, name)
            tx.run("remove_record", row)
            return known is not None

        return await self._db.write(remove)


def get(tx: Transaction, kind: str, name: str) -> Record | None:
    """One record, or none."""
    row = tx.row("record", {"kind": kind, "name": name, "now": tx.now})
    return None if row is None else _record(*row)


def put(
    tx: Transaction,
    kind: str,
    name: str,
    document: str,
    revision: int | None,
    expires_in_ms: int | None,
) -> Record | None:
    """Create or replace a record, one at a time, if it still has the revision that is named."""
    tx.lock("records", kind, name)
    known = get(tx, kind, name)
    at = 0 if known is None else known.revision
    if revision is not None and revision != at:
        return None
    expires_at = None if expires_in_ms is None else tx.now + expires_in_ms
    record = _record(kind, name, document, at + 1, tx.now, expires_at)
    row = {
        "kind": kind,
        "name": name,
        "document": document,
        "revision": record.revision,
        "expires_at": expires_at,
    }
    tx.run("put_record", row | {"now": tx.now})
    return record


def _record(
    kind: str, name: str, document: str, revision: int, updated_at: int, expires_at: int | None
) -> Record:
    return Record(
        kind=kind,
        name=name,
        document=document,
        revision=revision,
        updated_at=updated_at,
        expires_at=expires_at,
    )


_COLUMNS = Entry.__struct_fields__
_INDEXED = (
    ("subject", "entries_of_subject"),
    ("actor", "entries_of_actor"),
    ("tenant_id", "entries_of_tenant"),
)
"""What has an index, that which fits the fewest entries first."""


class RelationalAuditLog:
    """`AuditLog` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def last(self) -> Entry | None:
        """The end of the chain."""
        return await self._db.read(last)

    async def append(self, entries: Sequence[Entry]) -> bool:
        """Add sealed entries where the chain ends."""
        return await self._db.write(lambda tx: append(tx, entries))

    async def page(self, after: int, limit: int = 1000) -> list[Entry]:
        """Entries in the order of the chain."""
        return await self._db.read(
            lambda tx: [_entry(row) for row in tx.rows("entries_after", (after, limit))]
        )

    async def find(self, where: AuditFilter) -> list[Entry]:
        """A page of entries, newest first."""
        query = next(
            (q for name, q in _INDEXED if getattr(where, name) is not None), "find_entries"
        )
        return await self._db.read(
            lambda tx: [_entry(row) for row in tx.rows(query, asdict(where))]
        )


def last(tx: Transaction) -> Entry | None:
    """The end of the chain."""
    row = tx.row("last_entry")
    return None if row is None else _entry(row)


def append(tx: Transaction, entries: Sequence[Entry]) -> bool:
    """Add sealed entries, if they continue the chain as it now ends."""
    if not entries:
        return True
    tx.lock("audit")
    end = last(tx)
    first = entries[0]
    if first.seq != (end.seq if end else 0) + 1 or (end is not None and first.previous != end.hash):
        return False
    tx.many("append_entry", [astuple(entry) for entry in entries])
    return True


def _entry(row: tuple[Any, ...]) -> Entry:
    return Entry(**dict(zip(_COLUMNS, row, strict=True)))
