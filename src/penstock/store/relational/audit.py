"""The audit log in SQL."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict, astuple

from penstock.model.audit import Entry
from penstock.store.contract import AuditFilter
from penstock.store.relational.database import Database
from penstock.store.relational.transaction import Transaction

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
