"""Small documents and the audit log in SQL."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict, astuple

from penstock.model.audit import Entry
from penstock.store.contract import AuditFilter, Record
from penstock.store.relational.transaction import StorePart, Transaction, reads, writes


class RelationalRecords(StorePart):
    """`Records` in SQL."""

    @reads
    def get(self, tx: Transaction, kind: str, name: str) -> Record | None:
        """One record, or None."""
        return _get(tx, kind, name)

    @reads
    def list(
        self, tx: Transaction, kind: str, *, after: str = "", limit: int = 1000
    ) -> "list[Record]":
        """A page of a kind, by name."""
        row = {"kind": kind, "after": after, "limit": limit, "now": tx.now}
        return [_record(*found) for found in tx.rows("records", row)]

    @writes
    def put(
        self,
        tx: Transaction,
        kind: str,
        name: str,
        document: str,
        *,
        revision: int | None = None,
        expires_in_ms: int | None = None,
    ) -> Record | None:
        """Create or replace a record, one at a time, if it still has the revision that is named."""
        tx.lock("records", kind, name)
        known = _get(tx, kind, name)
        at = known.revision if known else 0
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
            "now": tx.now,
        }
        tx.run("put_record", row)
        return record

    @writes
    def remove(self, tx: Transaction, kind: str, name: str) -> bool:
        """Delete a record; whether there was one."""
        known = _get(tx, kind, name)
        tx.run("remove_record", {"kind": kind, "name": name})
        return known is not None


def _get(tx: Transaction, kind: str, name: str) -> Record | None:
    row = tx.row("record", {"kind": kind, "name": name, "now": tx.now})
    return None if row is None else _record(*row)


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


class RelationalAuditLog(StorePart):
    """`AuditLog` in SQL."""

    @reads
    def last(self, tx: Transaction) -> Entry | None:
        """The end of the chain."""
        return _last(tx)

    @writes
    def append(self, tx: Transaction, entries: Sequence[Entry]) -> bool:
        """Add sealed entries, if they continue the chain as it now ends."""
        if not entries:
            return True
        tx.lock("audit")
        end, first = _last(tx), entries[0]
        if end is None:
            follows = first.seq == 1
        else:
            follows = (first.seq, first.previous) == (end.seq + 1, end.hash)
        if follows:
            tx.many("append_entry", [astuple(entry) for entry in entries])
        return follows

    @reads
    def page(self, tx: Transaction, after: int, limit: int = 1000) -> list[Entry]:
        """Entries in the order of the chain."""
        return [_entry(row) for row in tx.rows("entries_after", (after, limit))]

    @reads
    def find(self, tx: Transaction, where: AuditFilter) -> list[Entry]:
        """A page of entries, newest first."""
        query = next(
            (q for name, q in _INDEXED if getattr(where, name) is not None), "find_entries"
        )
        return [_entry(row) for row in tx.rows(query, asdict(where))]


def _last(tx: Transaction) -> Entry | None:
    row = tx.row("last_entry")
    return None if row is None else _entry(row)


def _entry(row: tuple[Any, ...]) -> Entry:
    return Entry(**dict(zip(_COLUMNS, row, strict=True)))
