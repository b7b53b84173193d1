"""What an operator may do to jobs: cancel and requeue."""

from collections.abc import Sequence

from penstock.model.errors import IllegalTransition, JobNotFound, KeyTaken
from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.job import KeyScope
from penstock.model.redact import redact
from penstock.model.states import sources
from penstock.store.sqlite.bury import release_keys
from penstock.store.sqlite.counters import Counters
from penstock.store.sqlite.enqueue import take_key
from penstock.store.sqlite.transaction import Transaction


def cancel(tx: Transaction, ids: Sequence[str], reason: str) -> dict[str, str]:
    """Cancel waiting jobs at once and ask running ones to stop; their status afterwards."""
    answer: dict[str, str] = {}
    ended = []
    reason = redact(str(reason))[:MESSAGE_LIMIT]
    for job_id in ids:
        row = {"id": job_id, "reason": reason, "now": tx.now}
        if tx.many("cancel_waiting", (row,)):
            ended.append(job_id)
        else:
            tx.run("request_cancel", row)
        status = tx.value("status_of", (job_id,))
        if status is None:
            raise JobNotFound(job_id)
        answer[job_id] = status
    if ended:
        release_keys(tx, ended)
        _count_cancelled(tx, ended)
    tx.changed = True
    return answer


def requeue(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Give ended jobs a fresh budget, all of them or none."""
    for job_id in ids:
        found = tx.row("requeueable", (job_id,))
        if found is None:
            raise JobNotFound(job_id)
        status, tenant_id, type_, key, scope = found
        if status not in sources("requeue"):
            raise IllegalTransition(status, "requeue", job_id)
        if key is not None and scope != KeyScope.WHILE_PENDING:
            holder = tx.value("key_holder", (tenant_id, type_, key, tx.now))
            if holder is not None and holder != job_id:
                raise KeyTaken(key, holder, type_)
        if key is not None and scope == KeyScope.UNTIL_DONE:
            take_key(tx, tenant_id, type_, key, job_id, KeyScope.UNTIL_DONE, None)
        row = {"id": job_id, "now": tx.now}
        tx.run("requeue", row)
        tx.run("resolve_requeued", row)
    tx.changed = True
    return list(ids)


def _count_cancelled(tx: Transaction, ids: list[str]) -> None:
    counters = Counters()
    for job_id in ids:
        for type_, queue in tx.rows("lane_of", (job_id,)):
            counters.add(type_, queue, "cancelled")
    counters.write(tx)
