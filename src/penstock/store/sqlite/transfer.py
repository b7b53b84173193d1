"""Moving a whole installation into or out of a file."""

from penstock.store.contract import Part
from penstock.store.relational.transaction import Transaction
from penstock.store.relational.transfer import RelationalTransfer, columns_of

BY_HAND = frozenset({(Part.JOBS, "payload"), (Part.DEAD_LETTERS, "snapshot")})
"""What may have been edited by hand, and is read as bytes because they need not be UTF-8."""


class SqliteTransfer(RelationalTransfer):
    """`Transfer` on SQLite."""

    def page_query(self, tx: Transaction, part: Part) -> str:
        """A page by its index."""
        place = self.places[part]
        order = ", ".join(place.order)
        read = [f"CAST({c} AS BLOB)" if (part, c) in BY_HAND else c for c in columns_of(part)]
        return (
            f"SELECT {order}, {', '.join(read)} FROM {place.table} "
            f"WHERE ({order}) > ({_placeholders(len(place.order))}) ORDER BY {order} LIMIT ?"
        )

    def adopt_query(self, tx: Transaction, part: Part) -> str:
        """One row."""
        names = columns_of(part)
        return (
            f"INSERT INTO {self.places[part].table} ({', '.join(names)}) "
            f"VALUES ({_placeholders(len(names))}) ON CONFLICT DO NOTHING"
        )


def _placeholders(count: int) -> str:
    return ", ".join("?" * count)
