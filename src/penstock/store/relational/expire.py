"""Dead-lettering waiting jobs that nobody needs any more."""

from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass
from penstock.store.relational.bury import details, keep_dead_letter
from penstock.store.relational.counters import Counters
from penstock.store.relational.release import end
from penstock.store.relational.transaction import Transaction


def expire(tx: Transaction, limit: int) -> list[str]:
    """Bury waiting jobs past their expiry."""
    rows = tx.rows("expiring", (tx.now, limit))
    if not rows:
        return []
    failure = Failure.because(ErrorClass.TIMEOUT, "Expired", "The job expired before it could run.")
    counters = Counters()
    for job_id, type_, queue in rows:
        tx.run(
            "expire",
            {
                "id": job_id,
                "error": failure.message,
                "details": details(failure),
                "now": tx.now,
            },
        )
        keep_dead_letter(tx, job_id, failure)
        counters.add(type_, queue, "dead")
    ids = [row[0] for row in rows]
    end(tx, ids)
    counters.write(tx)
    tx.changed = True
    return ids
