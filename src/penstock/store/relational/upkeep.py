"""The leader's passes in SQL: rescuing jobs whose worker is gone, and pruning."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.json import encode

from penstock.model.failure import LEASE_LOST
from penstock.model.states import Status
from penstock.store.contract import Fate, Pruned, Rescued, Retention
from penstock.store.relational.claim import stage
from penstock.store.relational.endings import Counters, Lane, keep_dead_letters
from penstock.store.relational.expire import expire
from penstock.store.relational.release import end, sweep
from penstock.store.relational.transaction import StorePart, Transaction, writes


def prune(tx: Transaction, retention: Retention, limit: int) -> Pruned:
    """Delete ended jobs past their retention, with their history, oldest first."""
    deleted = 0
    more = False
    for status in retention.keep_ms:
        old = _past(tx, status, retention, limit)
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


def _past(tx: Transaction, status: Status, retention: Retention, limit: int) -> list[str]:
    """Jobs past the retention of a status, the first that ended first."""
    wanted = {
        "status": status.value,
        "before": tx.now - retention.keep_ms[status],
        "spared": _spared(tx, status, retention),
        "limit": limit,
    }
    old = [row[0] for row in tx.rows("ended_before", wanted)]
    query = _TO_REMOVE.get(status)
    if query is not None and len(old) < limit:
        asked = {"now": tx.now, "limit": limit - len(old)}
        old += [row[0] for row in tx.rows(query, asked)]
    return old


_TO_REMOVE = {Status.COMPLETED: "completed_to_remove", Status.DEAD_LETTER: "dead_to_remove"}
"""Jobs that say themselves when they are removed."""


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


class RelationalUpkeep(StorePart):
    """`Upkeep` in SQL."""

    @writes
    def lead(self, tx: Transaction, role: str, owner: str, term_ms: int) -> bool:
        """Take or keep the leadership for a term."""
        row = {"role": role, "owner": owner, "monotonic": tx.monotonic}
        return tx.many("lead", (row | {"until": tx.monotonic + term_ms},)) == 1

    @writes
    def resign(self, tx: Transaction, role: str, owner: str) -> None:
        """Give the leadership up at once."""
        tx.run("resign", (role, owner))

    @writes
    def stage(self, tx: Transaction, limit: int = 1000) -> int:
        """Queue waiting jobs that fell due."""
        return stage(tx, limit)

    @writes
    def expire(self, tx: Transaction, limit: int = 1000) -> list[str]:
        """Dead-letter waiting jobs past their expiry."""
        return expire(tx, limit)

    @writes
    def rescue(
        self,
        tx: Transaction,
        *,
        owner: str | None = None,
        max_rescues: int = 3,
        limit: int = 1000,
    ) -> list[Rescued]:
        """Take away leases that ran out, or all leases of a dead owner."""
        return rescue(tx, owner, max_rescues, limit)

    @writes
    def release(self, tx: Transaction, limit: int = 1000) -> int:
        """Close edges whose parent has ended."""
        return sweep(tx, limit)

    @writes
    def erase(self, tx: Transaction, ids: Sequence[str]) -> int:
        """Delete ended jobs and their dead letters at once."""
        ended = [row[0] for row in tx.rows("ended_among", (tx.listed(ids),))]
        delete(tx, ended)
        tx.run("forget_keys", (tx.listed(ended),))
        tx.run("forget_changes", (tx.listed(ended),))
        return len(ended)

    @writes
    def erase_keys(self, tx: Transaction, tenant_id: str) -> int:
        """Delete all unique keys of a tenant."""
        return tx.run("forget_keys_of_tenant", (tenant_id,))

    @writes
    def prune(self, tx: Transaction, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention."""
        return prune(tx, retention, limit)

    @writes
    def prunable(self, tx: Transaction, retention: Retention, limit: int = 1000) -> list[str]:
        """The ids of jobs past the retention of their status."""
        return [id_ for status in retention.keep_ms for id_ in _past(tx, status, retention, limit)]

    @writes
    def prune_jobs(self, tx: Transaction, ids: Sequence[str], before: int) -> int:
        """Delete those of some jobs that ended before a time."""
        wanted = {"ids": tx.listed(ids), "before": before}
        old = [row[0] for row in tx.rows("ended_before_among", wanted)]
        delete(tx, old)
        return len(old)
