"""Questions about jobs on PostgreSQL, where ended ones have an index of their payloads."""

from typing import Any

from penstock.model.states import TERMINAL
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.relational.reader import RelationalReader
from penstock.store.relational.search import LOOKS, by_status
from penstock.store.relational.transaction import Transaction
from penstock.store.relational.wanted import Wanted

PLACES = 5_000
"""As many by their status: here each of them lies in another page of the table."""

FEW = 2_000
"""Up to so many jobs found by their payloads; for more, the index costs more than it saves."""


class PostgresReader(RelationalReader):
    """`JobReader` on PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database, narrow)


def narrow(tx: Transaction, wanted: Wanted) -> list[Any] | None:
    """All places where a job that fits can be, if the states or the payload tell."""
    places = by_status(tx, wanted, PLACES)
    return by_payload(tx, wanted) if places is None else places


def by_payload(tx: Transaction, wanted: Wanted) -> list[Any] | None:
    """Ended jobs by the index of their payloads, with all that live, if these are few."""
    document = wanted.document()
    if document is None:
        return None
    asked = wanted.bindings | {"looks": LOOKS, "document": document}
    living: list[Any] = []
    if wanted.statuses is None or wanted.statuses - TERMINAL:
        living = [row[0] for row in tx.rows("living_ids", asked)]
        if len(living) == LOOKS:
            return None
    ended = [row[0] for row in tx.rows("of_payload", asked | {"looks": FEW})]
    return None if len(ended) == FEW else [*living, *ended]
