"""What an operator may do to jobs: cancel, requeue, amend."""

from collections.abc import Sequence

from penstock.model.errors import IllegalTransition, JobNotFound, KeyTaken
from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.job import KeyScope
from penstock.model.redact import redact
from penstock.model.states import sources
from penstock.store.relational.counters import Counters
from penstock.store.relational.enqueue import take_key
from penstock.store.relational.release import end
from penstock.store.relational.transaction import Transaction


def cancel(tx: Transaction, ids: Sequence[str], reason: str) -> dict[str, str]:
    """Cancel waiting jobs at once and ask running ones to stop; their status afterwards."""
    counters = Counters()
    reason = redact(str(reason))[:MESSAGE_LIMIT]
    hold(tx, ids)
    row = {"ids": tx.listed(ids), "reason": reason, "now": tx.now}
    ended = counters.end_all(tx.rows("cancel_waiting", row), "cancelled")
    tx.run("forget_job_pause", (tx.listed(ended),))
    tx.run("request_cancel", row)
    statuses: dict[str, str] = dict(tx.rows("statuses_of", (row["ids"],)))
    end(tx, ended)
    counters.write(tx)
    tx.changed = True
    return {job_id: statuses[job_id] for job_id in ids}


def requeue(
    tx: Transaction, ids: Sequence[str], spread_ms: float, delay_ms: float = 0
) -> list[str]:
    """Give ended jobs a fresh budget, all of them or none, each due a while after the last."""
    hold(tx, ids)
    for place, job_id in enumerate(ids):
        refusal = _refusal(tx, job_id)
        if refusal is not None:
            raise refusal
        _requeue(tx, job_id, tx.now + round(delay_ms + place * spread_ms))
    _restore_dependents(tx, ids)
    tx.changed = True
    return list(ids)


def amend(tx: Transaction, job_id: str, payload: str) -> None:
    """Give an ended job other arguments, for its next requeue."""
    hold(tx, (job_id,))
    status = tx.value("status_of", (job_id,))
    if status not in sources("requeue"):
        raise IllegalTransition(status, "amend", job_id)
    tx.run("set_payload", (payload, job_id))
    tx.changed = True


def hold(tx: Transaction, ids: Sequence[str]) -> None:
    """Keep everybody else from changing these jobs until this transaction ends."""
    held = {row[0] for row in tx.rows("hold_jobs", (tx.listed(sorted(set(ids))),))}
    for job_id in ids:
        if job_id not in held:
            raise JobNotFound(job_id)


def _refusal(tx: Transaction, job_id: str) -> JobNotFound | IllegalTransition | KeyTaken | None:
    found = tx.row("requeueable", (job_id,))
    if found is None:
        return JobNotFound(job_id)
    status, tenant_id, type_, key, scope = found
    if status not in sources("requeue"):
        return IllegalTransition(status, "requeue", job_id)
    if key is not None and scope != KeyScope.WHILE_PENDING:
        holder = tx.value("key_holder", (tenant_id, type_, key, tx.now))
        if holder is not None and holder != job_id:
            return KeyTaken(key, holder, type_)
    return None


def _requeue(tx: Transaction, job_id: str, due: int) -> None:
    _, tenant_id, type_, key, scope = tx.row("requeueable", (job_id,)) or ("",) * 5
    if key is not None and scope == KeyScope.UNTIL_DONE:
        holder = take_key(tx, tenant_id, type_, key, job_id, KeyScope.UNTIL_DONE, None)
        if holder != job_id:  # taken since the look before
            raise KeyTaken(key, holder, type_)
    row = {"id": job_id, "now": tx.now, "due": due}
    tx.run("requeue", row)
    tx.run("resolve_requeued", row)


def _restore_dependents(tx: Transaction, ids: Sequence[str]) -> None:
    """Have children that ended because of a requeued parent wait for it again."""
    frontier = list(ids)
    while frontier:
        children = [row[0] for job_id in frontier for row in tx.rows("reopen_edges", (job_id,))]
        tx.many("raise_waiting", [(1, tx.now, child_id) for child_id in children])
        frontier = []
        for child_id in dict.fromkeys(children):
            restorable = tx.value("restorable", {"id": child_id}) is not None
            if restorable and _refusal(tx, child_id) is None:
                _requeue(tx, child_id, max(tx.now, tx.value("due_of", (child_id,))))
                frontier.append(child_id)
