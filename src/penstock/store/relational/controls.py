"""Pauses, limits and breakers in SQL: what claims obey, and how much of it is taken."""

from collections.abc import Collection, Sequence

from penstock.model.controls import (
    EVERY,
    Breaker,
    BreakerState,
    Leased,
    Limit,
    LimitKind,
    LimitName,
    LimitScope,
    LimitState,
    Pause,
    PauseScope,
    check_limits,
    leased_under,
    rate_state,
)
from penstock.model.errors import IllegalTransition
from penstock.model.failure import MESSAGE_LIMIT, NAME_LIMIT
from penstock.model.not_found import JobNotFound
from penstock.model.redact import redacted
from penstock.model.states import Status
from penstock.store.relational.breakers import define_breakers, known_breakers, reset_breaker
from penstock.store.relational.gates import read_slots, read_starts
from penstock.store.relational.jobs import hold
from penstock.store.relational.transaction import StorePart, Transaction, reads, writes

SHOWN_HOLDERS = 10


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


def pause_of(tx: Transaction, scope: PauseScope, name: str) -> Pause | None:
    """The pause of one thing, if there is one."""
    row = tx.row("pause_of", (scope.value, name))
    return None if row is None else _read_pause(*row)


def _pause_job(tx: Transaction, job_id: str) -> None:
    hold(tx, (job_id,))
    if tx.many("pause_job", ({"id": job_id, "now": tx.now},)):
        return
    status = tx.value("status_of", (job_id,))
    if status != Status.PAUSED:
        raise IllegalTransition(status, "pause", job_id)


def _read_pause(
    scope: str, name: str, reason: str | None, paused_by: str | None, created_at: int
) -> Pause:
    return Pause(
        scope=PauseScope(scope),
        name=name,
        reason=reason,
        paused_by=paused_by,
        created_at=created_at,
    )


class RelationalControls(StorePart):
    """`Controls` in SQL."""

    @writes
    def pause(
        self,
        tx: Transaction,
        scope: PauseScope,
        name: str,
        *,
        reason: str | None = None,
        by: str | None = None,
    ) -> Pause:
        """Hold a queue, a type, a tenant or one waiting job, which also leaves the queue."""
        if scope is PauseScope.JOB:
            _pause_job(tx, name)
        told, who = redacted(reason, MESSAGE_LIMIT), redacted(by, NAME_LIMIT)
        tx.run("pause", (scope.value, name, told, who, tx.now))
        tx.changed = True
        found = pause_of(tx, scope, name)
        assert found is not None
        return found

    @writes
    def resume(self, tx: Transaction, scope: PauseScope, name: str) -> bool:
        """Let it go on; a job goes back to waiting for its own time."""
        found = tx.many("resume", ((scope.value, name),)) == 1
        if scope is PauseScope.JOB:
            resumed = tx.many("resume_job", ({"id": name, "now": tx.now},)) == 1
            if not resumed and tx.value("status_of", (name,)) is None:
                raise JobNotFound(name)
            found = found or resumed
        tx.changed = True
        return found

    @reads
    def pauses(self, tx: Transaction) -> list[Pause]:
        """Return everything that is paused, the oldest first."""
        return [_read_pause(*row) for row in tx.rows("pauses")]

    @writes
    def set_limits(self, tx: Transaction, limits: Sequence[Limit]) -> None:
        """Set limits, all of them or none."""
        check_limits(limits)
        tx.lock("controls")
        for limit in limits:
            named = (limit.scope.value, limit.name, limit.kind.value)
            row = (*named, limit.capacity, limit.interval_ms, limit.by_operator, tx.now)
            tx.run("set_limit", row)
        tx.changed = True

    @writes
    def remove_limit(self, tx: Transaction, scope: LimitScope, name: str, kind: LimitKind) -> bool:
        """Take a limit away; whether there was one."""
        tx.changed = True
        return tx.many("remove_limit", ((scope.value, name, kind.value),)) == 1

    @reads
    def limits(self, tx: Transaction) -> list[LimitState]:
        """All limits and how much of each is taken."""
        return limit_states(tx, known_limits(tx))

    @writes
    def define_breakers(
        self, tx: Transaction, breakers: Sequence[Breaker], *, known_types: Collection[str] = ()
    ) -> None:
        """Set up breakers; those that exist keep their position."""
        define_breakers(tx, breakers, set(known_types))

    @writes
    def reset_breaker(self, tx: Transaction, name: str) -> bool:
        """Close a breaker by hand."""
        return reset_breaker(tx, name)

    @reads
    def breakers(self, tx: Transaction) -> list[BreakerState]:
        """All breakers."""
        return known_breakers(tx)
