"""Dead-lettering waiting jobs that nobody needs any more."""

from penstock.model.failure import EXPIRED
from penstock.store.relational.endings import Counters, Lane, keep_dead_letters
from penstock.store.relational.release import end
from penstock.store.relational.transaction import Transaction


def expire(tx: Transaction, limit: int) -> list[str]:
    """Bury waiting jobs past their expiry."""
    rows = tx.rows("expiring", (tx.now, limit))
    if not rows:
        return []
    counters = Counters()
    for job_id, type_, queue, tenant_id, attempts in rows:
        tx.run(
            "expire",
            {
                "id": job_id,
                "error": EXPIRED.message,
                "details": EXPIRED.details,
                "now": tx.now,
            },
        )
        keep_dead_letters(tx, (job_id,), EXPIRED)
        counters.end(Lane(type_, queue, tenant_id), "dead", attempts)
    ids = [row[0] for row in rows]
    end(tx, ids)
    counters.write(tx)
    tx.changed = True
    return ids
