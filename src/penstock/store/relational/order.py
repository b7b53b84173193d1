"""Lines of jobs that share an order key: each waits for the one before it.

A job joins its line when it could run, not before: one that is due tomorrow keeps nobody waiting.
Its place is an edge of kind `order` to the job before it, closed like any other edge.
"""

from collections.abc import Sequence

from penstock.model.dependency import EdgeKind, OnFailure, OnRequeue
from penstock.model.job import PRIORITY_STEP_MS
from penstock.store.relational.transaction import Transaction


def join(tx: Transaction, job_id: str, tenant_id: str, order_key: str) -> bool:
    """Stand in line; whether the job is the first."""
    tx.lock("line", tenant_id, order_key)
    before = tx.value("last_in_line", (tenant_id, order_key))
    tx.run("join_line", (tenant_id, order_key, job_id))
    if before is None:
        return True
    _stand_behind(tx, job_id, before)
    return False


def stage_ordered(tx: Transaction, limit: int) -> int:
    """Have jobs with an order key that fell due join their lines; how many were the first."""
    queued = 0
    for job_id, tenant_id, order_key in tx.rows("due_ordered", (tx.now, limit)):
        row = {"id": job_id, "now": tx.now}
        if join(tx, job_id, tenant_id, order_key):
            tx.run("stage_first_in_line", row | {"priority_weight": PRIORITY_STEP_MS})
            queued += 1
        else:
            tx.run("stand_in_line", row)
    return queued


def leave(tx: Transaction, ended: Sequence[str]) -> dict[str, str]:
    """Take ended jobs out of their lines; who stood before those that had not got to the front."""
    if tx.value("any_line") is None:
        return {}
    for line in tx.rows("lines_of", (tx.listed(ended),)):
        tx.lock("line", *line)
    out: dict[str, str] = dict(tx.rows("step_out_of_line", (tx.listed(ended),)))
    over = set(ended)
    found = {job_id: _still_in_line(job_id, out, over) for job_id in out}
    before = {job_id: ahead for job_id, ahead in found.items() if ahead is not None}
    tx.many("lower_waiting", [(1, tx.now, job_id) for job_id in out])
    tx.run("leave_line", (tx.listed([job_id for job_id in ended if job_id not in before]),))
    tx.many("end_line_with", [(ahead, job_id) for job_id, ahead in before.items()])
    return before


def close_up(tx: Transaction, child_id: str, ahead: str) -> None:
    """A job whose place in line was before this one is gone: stand behind the next one ahead."""
    _stand_behind(tx, child_id, ahead)
    tx.run("raise_waiting", (1, tx.now, child_id))


def _stand_behind(tx: Transaction, job_id: str, before: str) -> None:
    edge = (job_id, before, EdgeKind.ORDER.value, "", None, None)
    tx.run("insert_edge", (*edge, OnFailure.RUN.value, OnRequeue.LEAVE.value, tx.now))


def _still_in_line(job_id: str, out: dict[str, str], over: set[str]) -> str | None:
    """The nearest one ahead that has not ended too."""
    ahead: str | None = job_id
    while ahead in over:
        ahead = out.get(ahead)
    return ahead
