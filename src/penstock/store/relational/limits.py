"""Limits in SQL: written down, and how much of each is taken."""

from collections.abc import Sequence

from penstock.model.limits import (
    EVERY,
    Leased,
    Limit,
    LimitKind,
    LimitName,
    LimitScope,
    LimitState,
    leased_under,
    rate_state,
)
from penstock.store.relational.gates import read_slots, read_starts
from penstock.store.relational.transaction import Transaction

SHOWN_HOLDERS = 10


def set_limits(tx: Transaction, limits: Sequence[Limit]) -> None:
    """Write limits."""
    tx.lock("controls")
    for limit in limits:
        named = (limit.scope.value, limit.name, limit.kind.value)
        row = (*named, limit.capacity, limit.interval_ms, limit.by_operator, tx.now)
        tx.run("set_limit", row)
    tx.changed = True


def remove_limit(tx: Transaction, scope: LimitScope, name: str, kind: LimitKind) -> bool:
    """Take a limit away; whether there was one."""
    tx.changed = True
    return tx.many("remove_limit", ((scope.value, name, kind.value),)) == 1


def known_limits(tx: Transaction) -> list[Limit]:
    """All limits, by scope and name."""
    return [
        Limit(
            scope=LimitScope(scope),
            name=name,
            kind=LimitKind(kind),
            capacity=capacity,
            interval_ms=interval_ms,
            by_operator=bool(by_operator),
        )
        for scope, name, kind, capacity, interval_ms, by_operator in tx.rows("limits")
    ]


def limit_states(tx: Transaction, limits: Sequence[Limit]) -> list[LimitState]:
    """How much of each limit is taken, and by whom."""
    leased: dict[LimitName, dict[str, Leased]] = {}
    slots: dict[tuple[str, str, str], int] = {}
    if any(limit.kind is LimitKind.CONCURRENCY for limit in limits):
        leased = leased_under(tx.rows("leased_lanes"))
        slots = read_slots(tx)
    return [_state(tx, limit, leased, slots) for limit in limits]


def _state(
    tx: Transaction,
    limit: Limit,
    leased: dict[LimitName, dict[str, Leased]],
    slots: dict[tuple[str, str, str], int],
) -> LimitState:
    name = (limit.scope, limit.name)
    if limit.kind is LimitKind.RATE:
        return rate_state(limit, read_starts(tx, name), tx.now)
    if limit.kind is LimitKind.DEPTH:
        each = limit.name == EVERY
        used = 0 if each else tx.value("queue_depth", (limit.name, limit.capacity + 1))
        return LimitState(limit=limit, used=used)
    owners = leased.get(name, {})
    used = sum(has.taken(slots.get((*name, owner), 0)) for owner, has in owners.items())
    about = {"scope": limit.scope.value, "name": limit.name, "limit": SHOWN_HOLDERS}
    holders = tuple(row[0] for row in tx.rows("holders", about)) if owners else ()
    return LimitState(limit=limit, used=used, holders=holders)
