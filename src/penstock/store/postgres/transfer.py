"""Moving a whole installation into or out of PostgreSQL: a page travels as one document."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from msgspec import DecodeError, Raw
from msgspec.json import decode, encode

from penstock.model.errors import InvalidOption
from penstock.model.states import TERMINAL
from penstock.model.transfer import DONE
from penstock.store.contract import COLUMNS, Bookmark, Part, Row, Tally
from penstock.store.postgres.connect import Address
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.queries import for_psycopg
from penstock.store.relational.transaction import Transaction
from penstock.store.relational.transfer import PLACES, Place, RelationalTransfer, columns_of

LAST = list(Part)[-1]


class PostgresTransfer(RelationalTransfer):
    """`Transfer` on PostgreSQL."""

    # By their ids, as jobs are listed here; seq has no index and only decides between equal ranks.
    places = MappingProxyType({**PLACES, Part.JOBS: Place("jobs", ("id",), ("",))})

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
        names, kinds = COLUMNS[part], _kinds(tx, self.places[part].table)
        records = [dict(zip(names, row, strict=True)) for row in rows]
        pairs = zip(names, columns_of(part), strict=True)
        documents = [name for name, column in pairs if kinds[column] in ("json", "jsonb")]
        for record in records:
            for name in documents:
                if record[name] is not None:
                    record[name] = _sound(record[name])
        text = encode(records).decode()
        if "\\u0000" in text:
            text = encode([_without_nul(record) for record in records]).decode()
        self.query(tx, "adopt", part).run("one", {"rows": text})

    def page_query(self, tx: Transaction, part: Part) -> bytes:
        """A page by its index, with times, lists and documents as JSON has them."""
        place, kinds = self.places[part], _kinds(tx, self.places[part].table)
        order = ", ".join(place.order)
        after = ", ".join(f"?::{kinds[name]}" for name in place.order)
        read = ", ".join(_READ.get(kinds[name], "{}").format(name) for name in columns_of(part))
        return for_psycopg(
            f"SELECT {order}, {read} FROM {place.table} "
            f"WHERE ({order}) > ({after}) ORDER BY {order} LIMIT ?"
        )

    def adopt_query(self, tx: Transaction, part: Part) -> bytes:
        """Rows as JSON objects, by the names of the contract."""
        table = self.places[part].table
        kinds = _kinds(tx, table)
        names, columns = COLUMNS[part], columns_of(part)
        pairs = list(zip(names, (kinds[column] for column in columns), strict=True))
        given = ", ".join(f"{name} {_GIVEN.get(kind, kind)}" for name, kind in pairs)
        written = [_WRITTEN.get(kind, "{}").format(name) for name, kind in pairs]
        if part is Part.JOBS:
            columns, written = ["live", *columns], [_LIVE, *written]
        return for_psycopg(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(written)} "
            f"FROM json_to_recordset(:rows::json) AS given ({given}) ON CONFLICT DO NOTHING"
        )


_LIVE = "status NOT IN (" + ", ".join(f"'{status}'" for status in sorted(TERMINAL)) + ")"
_TIME = "timestamp with time zone"
_READ = {_TIME: "ms({})", "text[]": "to_json({})::text", "json": "{}::text", "jsonb": "{}::text"}
_GIVEN = {_TIME: "bigint", "json": "text", "jsonb": "text"}
_WRITTEN = {_TIME: "at({})", "json": "{}::json", "jsonb": "{}::jsonb"}
"""How values of a type are read, what they are in a document, and how they are written."""


def _kinds(tx: Transaction, table: str) -> dict[str, str]:
    """The columns of a table, and the type of each."""
    return {str(name): str(kind) for name, kind in tx.rows("table_columns", (table,))}


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
