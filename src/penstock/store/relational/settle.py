"""Ending leases. Every write is fenced; what was not written is reported as stale."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.failure import Failure
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.store.contract import Report
from penstock.store.relational import breakers
from penstock.store.relational.endings import Counters, Lane, keep_dead_letters
from penstock.store.relational.release import end
from penstock.store.relational.transaction import Transaction


def settle(tx: Transaction, owner: str, settlements: Sequence[Settlement]) -> list[str]:
    """Apply each settlement whose fence still holds; the ids of the others."""
    counters = Counters()
    completed = [s for s in settlements if isinstance(s, Completed)]
    ended, stale = _complete(tx, owner, completed, counters)
    for settlement in settlements:
        if isinstance(settlement, Completed):
            continue
        ending = _ENDINGS[type(settlement)](tx, owner, settlement)
        if ending is None:
            stale.append(settlement)
            continue
        if ending in _TERMINAL_ENDINGS:
            ended.append(settlement.id)
        if ending != "handed_back":
            counters.ended([settlement], ending)
        elif isinstance(settlement, HandedBack) and settlement.started:
            lane = Lane(settlement.type, settlement.queue, settlement.tenant_id)
            counters.add(lane, "started")
    end(tx, ended)
    breakers.heed(tx, settlements, stale)
    counters.write(tx)
    tx.changed = True
    return [s.id for s in stale if not settled_before(tx, owner, s)]


def report(tx: Transaction, owner: str, reports: Sequence[Report]) -> list[str]:
    """Write progress, checkpoints and logs of running executions."""
    stale = []
    for item in reports:
        row = _identity(tx, owner, item) | {
            "percent": item.progress_percent,
            "message": item.progress_message,
            "document": item.progress,
            "checkpoint": item.checkpoint,
        }
        if tx.many("report_progress", (row,)) == 0:
            stale.append(item.id)
        elif item.logs:
            tx.many("insert_log", [(item.id, item.fence, *line) for line in item.logs])
    tx.changed = True
    return stale


def _complete(
    tx: Transaction, owner: str, settlements: list[Completed], counters: Counters
) -> tuple[list[str], list[Settlement]]:
    """The hot path: two statements for the whole batch; the ids that ended, and what was stale."""
    if not settlements:
        return [], []
    stale: list[Settlement] = []
    with tx.savepoint() as savepoint:
        if _complete_all(tx, owner, settlements) != len(settlements):
            savepoint.undo()
            stale = [s for s in settlements if _complete_all(tx, owner, [s]) == 0]
    lost = {id(s) for s in stale}
    applied = [s for s in settlements if id(s) not in lost]
    counters.ended(applied, "completed")
    return [s.id for s in applied], stale


def returned(settlements: Sequence[Completed]) -> str:
    """Executions that returned, as one document for the dialect's statements, in order of id."""
    ended = [
        (s.id, s.fence, s.result, s.started_at, s.wait_ms, s.duration_ms, s.cpu_ms, s.memory_kb)
        for s in sorted(settlements, key=lambda s: s.id)
    ]
    return encode(ended).decode()


def _complete_all(tx: Transaction, owner: str, settlements: Sequence[Completed]) -> int:
    """Complete those still held, with their executions; how many they were."""
    row = {"ended": returned(settlements), "owner": owner, "now": tx.now}
    completed = tx.run("complete", row)
    if completed == len(settlements):
        tx.run("insert_completed_executions", row)
    return completed


def _fail(tx: Transaction, owner: str, settlement: Failed) -> str | None:
    row = _identity(tx, owner, settlement) | {
        "spent": settlement.spends_attempt,
        "error": settlement.failure.message,
        "details": settlement.failure.details,
        "retry_at": tx.now + settlement.retry_in_ms,
        "timeout_ms": settlement.timeout_ms,
        "started_at": settlement.started_at,
    }
    if tx.many("fail", (row,)) == 0:
        return _stop_if_requested(tx, owner, settlement)
    _keep(tx, owner, settlement, "failed", settlement.failure)
    return "failed"


def _snooze(tx: Transaction, owner: str, settlement: Snoozed) -> str | None:
    row = _identity(tx, owner, settlement) | {
        "retry_at": tx.now + settlement.delay_ms,
        "started_at": settlement.started_at,
    }
    if tx.many("snooze", (row,)) == 0:
        return _stop_if_requested(tx, owner, settlement)
    _keep(tx, owner, settlement, "snoozed", words=settlement.reason)
    return "snoozed"


def _cancel(tx: Transaction, owner: str, settlement: Cancelled) -> str | None:
    return _stop(tx, owner, settlement, settlement.reason)


def _bury(tx: Transaction, owner: str, settlement: Buried) -> str | None:
    return _lay_down(tx, owner, settlement, settlement.failure, spent=True)


def _crash(tx: Transaction, owner: str, settlement: Crashed) -> str | None:
    rescues = tx.value("rescues_of", (settlement.id, settlement.fence, owner))
    if rescues is not None and rescues + 1 >= settlement.max_rescues:
        return _lay_down(tx, owner, settlement, settlement.failure, rescued=True)
    row = _identity(tx, owner, settlement) | {
        "rescued": True,
        "error": settlement.failure.message,
        "details": settlement.failure.details,
    }
    if tx.many("hand_back", (row,)) == 0:
        return _stop_if_requested(tx, owner, settlement)
    _keep(tx, owner, settlement, "crashed", settlement.failure)
    return "crashed"


def _hand_back(tx: Transaction, owner: str, settlement: HandedBack) -> str | None:
    row = _identity(tx, owner, settlement) | {"rescued": False, "error": None, "details": None}
    if tx.many("hand_back", (row,)) == 0:
        return _stop_if_requested(tx, owner, settlement)
    if settlement.started:
        _keep(tx, owner, settlement, "interrupted")
    return "handed_back"


def _stop_if_requested(tx: Transaction, owner: str, settlement: Settlement) -> str | None:
    """An operator's cancel meets an execution that would have gone on: the cancel wins."""
    return _stop(tx, owner, settlement, "cancelled while it ran")


def _stop(tx: Transaction, owner: str, settlement: Settlement, reason: str) -> str | None:
    ran = not isinstance(settlement, HandedBack) or settlement.started
    row = _identity(tx, owner, settlement) | {
        "reason": reason,
        "started_at": settlement.started_at if ran else None,
        "taken": False,
    }
    if tx.many("stop", (row,)) == 0:
        return None
    if ran:
        _keep(tx, owner, settlement, "cancelled")
    return "cancelled"


def _lay_down(
    tx: Transaction,
    owner: str,
    settlement: Settlement,
    failure: Failure,
    *,
    spent: bool = False,
    rescued: bool = False,
) -> str | None:
    row = _identity(tx, owner, settlement) | {
        "spent": spent,
        "rescued": rescued,
        "taken": False,
        "error": failure.message,
        "details": failure.details,
        "started_at": settlement.started_at,
    }
    if tx.many("bury", (row,)) == 0:
        return None
    _keep(tx, owner, settlement, "dead", failure)
    keep_dead_letters(tx, (settlement.id,), failure)
    return "dead"


_ENDINGS: dict[type[Settlement], Callable[[Transaction, str, Any], str | None]] = {
    Failed: _fail,
    Snoozed: _snooze,
    Cancelled: _cancel,
    Buried: _bury,
    Crashed: _crash,
    HandedBack: _hand_back,
}
_TERMINAL_ENDINGS = frozenset({"cancelled", "dead"})


def settled_before(tx: Transaction, owner: str, settlement: Settlement) -> bool:
    """Whether the same settlement was applied already and only its answer was lost."""
    return tx.value("settled_before", (settlement.id, settlement.fence, owner)) is not None


def _identity(tx: Transaction, owner: str, item: Settlement | Report) -> dict[str, Any]:
    return {"id": item.id, "fence": item.fence, "owner": owner, "now": tx.now}


def _keep(
    tx: Transaction,
    owner: str,
    settlement: Settlement,
    status: str,
    failure: Failure | None = None,
    words: str | None = None,
) -> None:
    """Write the execution, with its failure or with what the handler said of it."""
    row: tuple[Any, ...] = (
        settlement.id,
        settlement.fence,
        status,
        settlement.started_at,
        tx.now,
        settlement.wait_ms,
        settlement.duration_ms,
        settlement.cpu_ms,
        settlement.memory_kb,
        owner,
        str(failure.error_class) if failure else None,
        failure.code if failure else None,
        failure.message if failure else words,
        failure.stack if failure else None,
        None,
    )
    tx.run("insert_execution", row)
