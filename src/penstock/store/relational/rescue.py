"""Taking leases away from workers that are gone, without punishing the innocent."""

from typing import Any, NamedTuple

from penstock.model.failure import LEASE_LOST
from penstock.store.contract import Fate, Rescued
from penstock.store.relational.bury import keep_dead_letters
from penstock.store.relational.counters import Counters, Lane
from penstock.store.relational.release import end
from penstock.store.relational.transaction import Transaction


class _Lapsed(NamedTuple):
    id: str
    type: str
    queue: str
    fence: int
    owner: str
    started_at: int | None
    rescues: int
    cancel_requested_at: int | None
    queued_at: int
    attempts: int
    tenant_id: str

    @property
    def lane(self) -> Lane:
        return Lane(self.type, self.queue, self.tenant_id)


def rescue(tx: Transaction, owner: str | None, max_rescues: int, limit: int) -> list[Rescued]:
    """Take away leases that ran out, or every lease of a dead owner."""
    if owner is None:
        tx.run("adopt")
        rows = tx.rows("lapsed", {"monotonic": tx.monotonic, "limit": limit})
    else:
        rows = tx.rows("leased_by", {"owner": owner, "limit": limit})
    if not rows:
        return []
    counters = Counters()
    rescued = []
    for row in rows:
        lapsed = _Lapsed(*row)
        fate = _take_away(tx, lapsed, max_rescues)
        counters.add(lapsed.lane, "lease_expiries")
        counters.add(lapsed.lane, "started", lapsed.started_at is not None)
        if fate in (Fate.CANCELLED, Fate.DEAD):
            counters.end(lapsed.lane, fate.value, lapsed.attempts)
        rescued.append(Rescued(lapsed.id, lapsed.type, lapsed.owner, fate))
    end(tx, [r.id for r in rescued if r.fate in (Fate.CANCELLED, Fate.DEAD)])
    counters.write(tx)
    tx.changed = True
    return rescued


def _take_away(tx: Transaction, lapsed: _Lapsed, max_rescues: int) -> Fate:
    row: dict[str, Any] = {
        "id": lapsed.id,
        "fence": lapsed.fence,
        "owner": lapsed.owner,
        "now": tx.now,
        "started_at": lapsed.started_at,
        "reason": "cancelled while it ran",
        "error": None,
        "details": None,
        "rescued": lapsed.started_at is not None,
        "spent": False,
        "taken": True,
    }
    if lapsed.cancel_requested_at is not None:
        _keep_lost(tx, lapsed)
        tx.run("stop", row)
        return Fate.CANCELLED
    if lapsed.started_at is None:
        tx.run("hand_back", row)
        return Fate.UNTOUCHED
    _keep_lost(tx, lapsed)
    row |= {"error": LEASE_LOST.message, "details": LEASE_LOST.details}
    if lapsed.rescues + 1 < max_rescues:
        tx.run("hand_back", row)
        return Fate.RESCUED
    tx.run("bury", row)
    keep_dead_letters(tx, (lapsed.id,), LEASE_LOST)
    return Fate.DEAD


def _keep_lost(tx: Transaction, lapsed: _Lapsed) -> None:
    if lapsed.started_at is None:
        return
    execution = (
        lapsed.id,
        lapsed.fence,
        "lost",
        lapsed.started_at,
        tx.now,
        lapsed.started_at - lapsed.queued_at,
        tx.now - lapsed.started_at,
        None,
        None,
        lapsed.owner,
        str(LEASE_LOST.error_class),
        LEASE_LOST.code,
        LEASE_LOST.message,
        None,
        None,
    )
    tx.run("insert_execution", execution)
