"""Keeping leases alive, and hearing who asked running jobs to stop."""

from collections.abc import Collection, Sequence

from penstock.store.contract import Held, Renewal
from penstock.store.relational.database import Database
from penstock.store.relational.transaction import Transaction


def renew(
    tx: Transaction,
    owner: str,
    held: Sequence[Held],
    unheard_ms: int | None = None,
    given_up: Collection[str] = (),
) -> Renewal:
    """Extend what the owner still holds, and what it was granted without knowing it yet."""
    rows = [(tx.monotonic + h.lease_ms, h.id, h.fence, owner) for h in held]
    kept = tx.fenced("renew", rows)
    lost = [h.id for h, ok in zip(held, kept, strict=True) if not ok]
    if unheard_ms is not None:
        known = tx.listed([*(h.id for h in held), *given_up])
        tx.run("renew_unheard", (tx.monotonic + unheard_ms, owner, known))
    return Renewal(lost, cancel_requests(tx, owner))


def cancel_requests(tx: Transaction, owner: str) -> list[str]:
    """The owner's running jobs that somebody asked to stop."""
    return [row[0] for row in tx.rows("cancel_requests", (owner,))]


class RelationalLeases:
    """`Leases` in SQL."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def renew(
        self,
        owner: str,
        held: Sequence[Held],
        *,
        unheard_ms: int | None = None,
        given_up: Collection[str] = (),
    ) -> Renewal:
        """Extend what the owner still holds, and what it was granted without knowing it yet."""
        return self._db.write_now(lambda tx: renew(tx, owner, held, unheard_ms, given_up))

    def held(self, owner: str) -> list[str]:
        """The ids of all jobs the owner has leased."""
        return self._db.read_now(lambda tx: [row[0] for row in tx.rows("held", (owner,))])

    def cancel_requests(self, owner: str) -> list[str]:
        """The owner's running jobs that somebody asked to stop."""
        return self._db.read_now(lambda tx: cancel_requests(tx, owner))
