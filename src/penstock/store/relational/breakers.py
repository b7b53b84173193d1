"""Circuit breakers in SQL: what executions say about the things they depend on."""

from collections.abc import Iterable, Sequence

from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.controls import COUNTED, Breaker, BreakerState
from penstock.model.outcome import Buried, Completed, Failed, Settlement
from penstock.model.states import Status
from penstock.store.relational.transaction import Transaction


def heed(tx: Transaction, settlements: Sequence[Settlement], stale: Sequence[Settlement]) -> None:
    """Open, close or leave the breakers that guard what these executions depended on."""
    if not settlements or tx.value("any_breaker") is None:
        return
    lost = {id(settlement) for settlement in stale}
    heard = [settlement for settlement in settlements if id(settlement) not in lost]
    # Mostly nothing changes, and then nobody has to wait for anybody.
    if _changes(tx, known_breakers(tx), heard):
        for state in _changes(tx, breakers_to_change(tx), heard):
            _write(tx, state)


def known_breakers(tx: Transaction) -> list[BreakerState]:
    """All breakers, by name."""
    return [breaker_state(name, decode(types), *rest) for name, types, *rest in tx.rows("breakers")]


def breakers_to_change(tx: Transaction) -> list[BreakerState]:
    """The same, which nobody else changes until this transaction ends."""
    rows = tx.rows("breakers_to_change")
    return [breaker_state(name, decode(types), *rest) for name, types, *rest in rows]


def define_breakers(tx: Transaction, breakers: Sequence[Breaker], known_types: set[str]) -> None:
    """Set up breakers; those that exist keep their position, and types of other applications."""
    tx.lock("controls")
    named = {breaker.name: breaker for breaker in breakers}
    for breaker in (state.breaker for state in known_breakers(tx)):
        others = [type_ for type_ in breaker.types if type_ not in known_types]
        chosen = named.pop(breaker.name, None)
        types = tuple(dict.fromkeys([*others, *(chosen.types if chosen else ())]))
        if types or chosen:
            _define(tx, replace(chosen or breaker, types=types))
        else:
            tx.run("drop_breaker", (breaker.name,))
    for breaker in named.values():
        _define(tx, breaker)
    tx.changed = True


def _define(tx: Transaction, breaker: Breaker) -> None:
    types = encode(breaker.types).decode()
    row = (breaker.name, types, breaker.failures, breaker.cool_down_ms, tx.now)
    tx.run("define_breaker", row)


def reset_breaker(tx: Transaction, name: str) -> bool:
    """Close a breaker by hand."""
    for state in breakers_to_change(tx):
        if state.breaker.name == name:
            _write(tx, replace(state, failed=0, opened_at=None, probe_id=None))
            tx.changed = True
            return True
    return False


def _changes(
    tx: Transaction, states: Iterable[BreakerState], settlements: Sequence[Settlement]
) -> list[BreakerState]:
    """Those that stand differently after these executions."""
    changed = []
    for state in states:
        after = state
        for settlement in settlements:
            if settlement.type in state.breaker.types:
                after = _after(after, settlement, tx.now)
        if after != state:
            changed.append(after)
    return changed


def _after(state: BreakerState, settlement: Settlement, now: int) -> BreakerState:
    """The breaker after one execution; while it is open, only its probe has a say."""
    probe = settlement.id == state.probe_id
    if state.opened_at is not None and not probe:
        return state
    if not isinstance(settlement, Completed | Failed | Buried):
        return replace(state, probe_id=None) if probe else state
    if isinstance(settlement, Completed) or settlement.failure.error_class not in COUNTED:
        counts = probe or isinstance(settlement, Completed)
        return replace(state, failed=0, opened_at=None, probe_id=None) if counts else state
    failed = state.failed + 1
    opens = probe or failed >= state.breaker.failures
    return replace(state, failed=failed, opened_at=now if opens else None, probe_id=None)


def _write(tx: Transaction, state: BreakerState) -> None:
    row = (state.failed, state.opened_at, state.probe_id, tx.now, state.breaker.name)
    tx.run("set_breaker", row)


def breaker_state(
    name: str,
    types: Iterable[str],
    failures: int,
    cool_down_ms: int,
    failed: int,
    opened_at: int | None,
    probe_id: str | None,
) -> BreakerState:
    """A breaker as its row has it."""
    breaker = Breaker(name=name, types=tuple(types), failures=failures, cool_down_ms=cool_down_ms)
    return BreakerState(breaker=breaker, failed=failed, opened_at=opened_at, probe_id=probe_id)


def is_probing(tx: Transaction, state: BreakerState) -> bool:
    """Whether its probe runs; one that ended without a settlement counts no more."""
    probe = state.probe_id
    return probe is not None and tx.value("status_of", (probe,)) == Status.IN_PROGRESS
