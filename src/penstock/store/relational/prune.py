"""Deleting what has ended and is no longer wanted."""

from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.states import Status
from penstock.store.contract import Pruned, Retention
from penstock.store.relational.transaction import Transaction


def prune(tx: Transaction, retention: Retention, limit: int) -> Pruned:
    """Delete ended jobs past their retention, with their history, oldest first."""
    deleted = 0
    more = False
    for status, keep_ms in retention.keep_ms.items():
        wanted = {
            "status": status.value,
            "before": tx.now - keep_ms,
            "spared": _spared(tx, status, retention),
            "limit": limit,
        }
        old = [row[0] for row in tx.rows("ended_before", wanted)]
        delete(tx, old)
        deleted += len(old)
        more = more or len(old) == limit
    closed = {
        "before": tx.now - retention.keep_closed_ms,
        "spared": _spared(tx, Status.DEAD_LETTER, retention),
        "limit": limit,
    }
    purged = purge(tx, [row[0] for row in tx.rows("closed_before", closed)])
    deleted += purged
    more = more or purged == limit
    tx.run("delete_expired_keys", (tx.now,))
    tx.run("drop_expired_records", (tx.now,))
    tx.lock("gates")
    tx.run("drop_idle_slots")
    tx.run("drop_old_starts", (tx.now,))
    return Pruned(deleted, more)


def _spared(tx: Transaction, status: Status, retention: Retention) -> Any:
    """The last jobs of each type that are kept whatever their age."""
    if not retention.keep_last:
        return tx.listed(())
    keep_last = encode(dict(retention.keep_last)).decode()
    rows = tx.rows("spare_last", {"status": status.value, "keep_last": keep_last})
    return tx.listed([row[0] for row in rows])


def purge(tx: Transaction, ids: Sequence[str]) -> int:
    """Delete dead letters and their jobs for good; a job that was requeued lives on."""
    listed = (tx.listed(ids),)
    known = [row[0] for row in tx.rows("purgeable", listed)]
    delete(tx, [row[0] for row in tx.rows("still_dead", listed)])
    tx.run("delete_dead_letters", (tx.listed(known),))
    return len(known)


def delete(tx: Transaction, ids: Sequence[str]) -> None:
    """Delete jobs and all that hangs on them; keys that outlive pruning stay."""
    if not ids:
        return
    listed = (tx.listed(ids),)
    for table in ("jobs", "executions", "logs", "dead_letters", "edges"):
        tx.run(f"delete_{table}", listed)
