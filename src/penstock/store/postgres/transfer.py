"""Moving a whole installation into or out of PostgreSQL: a page travels as one document."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from msgspec import DecodeError, Raw
from msgspec.json import decode, encode

from penstock.model.errors import InvalidOption
from penstock.model.transfer import DONE
from penstock.store.contract import COLUMNS, Bookmark, Part, Row, Tally
from penstock.store.postgres.connect import Address
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.relational.transaction import Transaction
from penstock.store.relational.transfer import FIRST, RelationalTransfer

LAST = list(Part)[-1]
_DOCUMENTS = {
    Part.JOBS: ("payload", "result", "error_details", "metadata"),
    Part.EXECUTIONS: ("result",),
    Part.DEAD_LETTERS: ("snapshot", "executions"),
    Part.DEPENDENCIES: ("result",),
    Part.SCHEDULES: ("payload", "options", "metadata"),
    Part.RECORDS: ("document",),
}


class PostgresTransfer(RelationalTransfer):
    """`Transfer` on PostgreSQL."""

    first = MappingProxyType({**FIRST, Part.JOBS: ("",)})

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database.beside)
        self._address: Address = database.address

    async def tally(self) -> Tally:  # type: ignore[override]  # mypy calls it a Coroutine
        """Count everything; one tenant's part of it is not an installation."""
        if self._address.tenant is not None:
            expected = "one without ?tenant=, to see the whole installation"
            raise InvalidOption("url", self._address.name, expected)
        return await super().tally()

    def read_in_order(self, tx: Transaction) -> None:
        """Have the next page read by its index, even where the tables are new."""
        tx.run("read_in_order")

    async def adopt(  # type: ignore[override]  # mypy calls it a Coroutine
        self, part: Part, rows: Sequence[Row], bookmark: Bookmark
    ) -> bool:
        """Write records as they are; after the last ones, look at what the tables hold."""
        adopted = await super().adopt(part, rows, bookmark)
        if adopted and part is LAST and bookmark.after == DONE:
            await self.db.write(lambda tx: tx.run("analyze"))
        return adopted

    def insert(self, tx: Transaction, part: Part, rows: Sequence[list[Any]]) -> None:
        """Insert rows, all by one statement."""
        names = COLUMNS[part]
        records = [dict(zip(names, row, strict=True)) for row in rows]
        for record in records:
            for name in _DOCUMENTS.get(part, ()):
                if record[name] is not None:
                    record[name] = _sound(record[name])
        text = encode(records).decode()
        if "\\u0000" in text:
            text = encode([_without_nul(record) for record in records]).decode()
        tx.run(f"adopt_{part.replace(' ', '_')}", {"rows": text})


def _sound(document: str) -> str:
    """The document, or as a JSON string what a hand has spoilt: PostgreSQL keeps nothing else."""
    try:
        decode(document, type=Raw)
    except DecodeError:
        return encode(document).decode()
    return document


def _without_nul(record: dict[str, Any]) -> dict[str, Any]:
    """Text without the one character that PostgreSQL cannot hold."""
    return {
        name: value.replace("\0", "\ufffd") if isinstance(value, str) else value
        for name, value in record.items()
    }
