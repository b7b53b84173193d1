"""Ending executions that returned, in one round trip."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.json import Decoder

from penstock.model.outcome import Completed, Settlement
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.relational import breakers
from penstock.store.relational.endings import Counters
from penstock.store.relational.release import end
from penstock.store.relational.settle import returned, settle, settled_before


class _Answer(Struct):
    done: list[str]
    follows: bool
    guarded: bool


_answer = Decoder(_Answer)


def settle_all(tx: PostgresTransaction, owner: str, settlements: Sequence[Settlement]) -> list[str]:
    """Apply each settlement whose fence still holds; the ids of the others."""
    completed = [s for s in settlements if isinstance(s, Completed)]
    if len({s.id for s in completed}) < len(completed):
        return settle(tx, owner, settlements)  # a lost lease and a later one of the same job
    stale = _complete(tx, owner, completed) if completed else []
    if len(completed) < len(settlements):
        others = [s for s in settlements if not isinstance(s, Completed)]
        stale += settle(tx, owner, others)
    return stale


def _complete(tx: PostgresTransaction, owner: str, settlements: list[Completed]) -> list[str]:
    tx.changed = True
    counters = Counters()
    counters.ended(settlements, "completed")
    row = {
        "ended": returned(settlements),
        "owner": owner,
        "sums": counters.document(),
        "now": tx.now,
    }
    answer = _answer.decode(tx.value("complete_all", row))
    if answer.follows:
        end(tx, answer.done)
    stale: list[Settlement] = []
    if len(answer.done) < len(settlements):
        done = set(answer.done)
        stale = [s for s in settlements if s.id not in done]
        applied = Counters()
        applied.ended([s for s in settlements if s.id in done], "completed")
        applied.write(tx)
    if answer.guarded:
        breakers.heed(tx, settlements, stale)
    return [s.id for s in stale if not settled_before(tx, owner, s)]
