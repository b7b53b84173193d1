"""Pauses in SQL: rows that the next claim obeys, and jobs taken out of the queue."""

from penstock.model.errors import IllegalTransition, JobNotFound
from penstock.model.failure import MESSAGE_LIMIT, NAME_LIMIT
from penstock.model.pause import Pause, PauseScope
from penstock.model.redact import redacted
from penstock.model.states import Status
from penstock.store.relational.operate import hold
from penstock.store.relational.transaction import Transaction


def pause(
    tx: Transaction, scope: PauseScope, name: str, reason: str | None, by: str | None
) -> Pause:
    """Write the pause; a job is also taken out of the queue."""
    if scope is PauseScope.JOB:
        _pause_job(tx, name)
    told, who = redacted(reason, MESSAGE_LIMIT), redacted(by, NAME_LIMIT)
    tx.run("pause", (scope.value, name, told, who, tx.now))
    tx.changed = True
    found = pause_of(tx, scope, name)
    assert found is not None
    return found


def resume(tx: Transaction, scope: PauseScope, name: str) -> bool:
    """Take the pause away; a job goes back to waiting for its own time."""
    found = tx.many("resume", ((scope.value, name),)) == 1
    if scope is PauseScope.JOB:
        resumed = tx.many("resume_job", ({"id": name, "now": tx.now},)) == 1
        if not resumed and tx.value("status_of", (name,)) is None:
            raise JobNotFound(name)
        found = found or resumed
    tx.changed = True
    return found


def known_pauses(tx: Transaction) -> list[Pause]:
    """Everything that is paused, the oldest first."""
    return [_pause(*row) for row in tx.rows("pauses")]


def pause_of(tx: Transaction, scope: PauseScope, name: str) -> Pause | None:
    """The pause of one thing, if there is one."""
    row = tx.row("pause_of", (scope.value, name))
    return None if row is None else _pause(*row)


def _pause_job(tx: Transaction, job_id: str) -> None:
    hold(tx, (job_id,))
    if tx.many("pause_job", ({"id": job_id, "now": tx.now},)):
        return
    status = tx.value("status_of", (job_id,))
    if status != Status.PAUSED:
        raise IllegalTransition(status, "pause", job_id)


def _pause(
    scope: str, name: str, reason: str | None, paused_by: str | None, created_at: int
) -> Pause:
    return Pause(
        scope=PauseScope(scope),
        name=name,
        reason=reason,
        paused_by=paused_by,
        created_at=created_at,
    )
