"""Pauses, limits and breakers on SQLite."""

from collections.abc import Collection, Sequence

from penstock.model.breaker import Breaker, BreakerState
from penstock.model.errors import IllegalTransition, JobNotFound
from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.limits import (
    EVERY,
    Limit,
    LimitKind,
    LimitScope,
    LimitState,
    check_limits,
    frees_in,
    room,
)
from penstock.model.pause import Pause, PauseScope
from penstock.model.redact import redact
from penstock.store.sqlite import breakers as guards
from penstock.store.sqlite.database import Database
from penstock.store.sqlite.gates import Name, leased_under, read_starts
from penstock.store.sqlite.transaction import Transaction

SHOWN_HOLDERS = 10


class SqliteControls:
    """`Controls` on SQLite."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def pause(
        self, scope: PauseScope, name: str, *, reason: str | None = None, by: str | None = None
    ) -> Pause:
        """Hold a queue, a type, a tenant or one waiting job."""
        return await self._db.write(lambda tx: pause(tx, scope, name, reason, by))

    async def resume(self, scope: PauseScope, name: str) -> bool:
        """Let it go on."""
        return await self._db.write(lambda tx: resume(tx, scope, name))

    async def pauses(self) -> list[Pause]:
        """Everything that is paused, the oldest first."""
        return await self._db.read(pauses)

    async def set_limits(self, limits: Sequence[Limit]) -> None:
        """Set limits, all of them or none."""
        check_limits(limits)
        await self._db.write(lambda tx: set_limits(tx, limits))

    async def drop_limit(self, scope: LimitScope, name: str, kind: LimitKind) -> bool:
        """Take a limit away; whether there was one."""

        def drop(tx: Transaction) -> bool:
            tx.changed = True
            return tx.many("drop_limit", ((scope.value, name, kind.value),)) == 1

        return await self._db.write(drop)

    async def limits(self) -> list[LimitState]:
        """All limits and how much of each is taken."""
        return await self._db.read(lambda tx: states_of(tx, known_limits(tx)))

    async def define_breakers(
        self, breakers: Sequence[Breaker], *, known_types: Collection[str] = ()
    ) -> None:
        """Set up breakers; those that exist keep their position."""
        await self._db.write(lambda tx: guards.define(tx, breakers, set(known_types)))

    async def reset_breaker(self, name: str) -> bool:
        """Close a breaker by hand."""
        return await self._db.write(lambda tx: guards.reset(tx, name))

    async def breakers(self) -> list[BreakerState]:
        """All breakers."""
        return await self._db.read(guards.known)


def pause(
    tx: Transaction, scope: PauseScope, name: str, reason: str | None, by: str | None
) -> Pause:
    """Write the pause; a job is also taken out of the queue."""
    told = None if reason is None else redact(reason)[:MESSAGE_LIMIT]
    who = None if by is None else redact(by)[:200]
    if scope is PauseScope.JOB:
        _pause_job(tx, name)
    tx.run("pause", (scope.value, name, told, who, tx.now))
    tx.changed = True
    found = tx.row("pause_of", (scope.value, name))
    assert found is not None
    return _pause(*found)


def _pause_job(tx: Transaction, job_id: str) -> None:
    if tx.many("pause_job", ({"id": job_id, "now": tx.now},)):
        return
    status = tx.value("status_of", (job_id,))
    if status is None:
        raise JobNotFound(job_id)
    if status != "paused":
        raise IllegalTransition(status, "pause", job_id)


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


def pauses(tx: Transaction) -> list[Pause]:
    """Everything that is paused, the oldest first."""
    return [_pause(*row) for row in tx.rows("pauses")]


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


def set_limits(tx: Transaction, limits: Sequence[Limit]) -> None:
    """Write limits."""
    for limit in limits:
        named = (limit.scope.value, limit.name, limit.kind.value)
        tx.run(
            "set_limit",
            (*named, limit.capacity, limit.interval_ms, limit.by_operator, tx.now),
        )
    tx.changed = True


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


def states_of(tx: Transaction, limits: Sequence[Limit]) -> list[LimitState]:
    """How much of each limit is taken, and by whom."""
    concurrent = any(limit.kind is LimitKind.CONCURRENCY for limit in limits)
    leased = leased_under(tx.rows("leased_lanes") if concurrent else ())
    slots = {(LimitScope(s), n, o): k for s, n, o, k in tx.rows("all_slots")}
    found = []
    for limit in limits:
        name: Name = (limit.scope, limit.name)
        if limit.kind is LimitKind.RATE:
            starts = read_starts(tx, name)
            used = limit.capacity - room(starts, limit, tx.now)
            frees = frees_in(starts, limit, tx.now)
            found.append(LimitState(limit=limit, used=used, frees_in_ms=frees))
        elif limit.kind is LimitKind.DEPTH:
            used = tx.value("queue_depth", (limit.name, limit.capacity + 1))
            found.append(LimitState(limit=limit, used=0 if limit.name == EVERY else used))
        else:
            owners = leased.get(name, {})
            used = sum(has.taken(slots.get((*name, owner), 0)) for owner, has in owners.items())
            row = {"scope": limit.scope.value, "name": limit.name, "limit": SHOWN_HOLDERS}
            holders = tuple(row[0] for row in tx.rows("holders", row)) if owners else ()
            found.append(LimitState(limit=limit, used=used, holders=holders))
    return found


def limits_on(
    tx: Transaction, queue: str, tenant_id: str, type_: str, limit_key: str | None
) -> list[Limit]:
    """The limits that hold for a job; one for `*` is named after what it is about here."""
    about = {
        LimitScope.QUEUE: queue,
        LimitScope.TENANT: tenant_id,
        LimitScope.TYPE: type_,
        LimitScope.KEY: limit_key or "",
    }
    found: dict[tuple[LimitScope, LimitKind], Limit] = {}
    for limit in known_limits(tx):
        name = about[limit.scope]
        if not name or limit.kind is LimitKind.DEPTH:
            continue
        if limit.name == name:
            found[limit.scope, limit.kind] = limit
        elif limit.name == EVERY:
            named = Limit(
                scope=limit.scope,
                name=name,
                kind=limit.kind,
                capacity=limit.capacity,
                interval_ms=limit.interval_ms,
                by_operator=limit.by_operator,
            )
            found.setdefault((limit.scope, limit.kind), named)
    return list(found.values())
