"""Keeping leases alive, and hearing who asked running jobs to stop."""

from collections.abc import Sequence

from penstock.store.contract import Held, Renewal
from penstock.store.sqlite.transaction import Transaction


def renew(tx: Transaction, owner: str, held: Sequence[Held]) -> Renewal:
    """Extend what the owner still holds."""
    rows = [(tx.monotonic + h.lease_ms, h.id, h.fence, owner) for h in held]
    kept = tx.fenced("renew", rows)
    lost = [h.id for h, ok in zip(held, kept, strict=True) if not ok]
    return Renewal(lost, cancel_requests(tx, owner))


def cancel_requests(tx: Transaction, owner: str) -> list[str]:
    """The owner's running jobs that somebody asked to stop."""
    return [row[0] for row in tx.rows("cancel_requests", (owner,))]
