"""Pauses, limits and breakers in SQL."""

from collections.abc import Collection, Sequence

from penstock.model.breaker import Breaker, BreakerState
from penstock.model.limits import Limit, LimitKind, LimitScope, LimitState, check_limits
from penstock.model.pause import Pause, PauseScope
from penstock.store.relational.breakers import define_breakers, known_breakers, reset_breaker
from penstock.store.relational.database import Database
from penstock.store.relational.limits import known_limits, limit_states, remove_limit, set_limits
from penstock.store.relational.pauses import known_pauses, pause, resume


class RelationalControls:
    """`Controls` in SQL."""

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
        return await self._db.read(known_pauses)

    async def set_limits(self, limits: Sequence[Limit]) -> None:
        """Set limits, all of them or none."""
        check_limits(limits)
        await self._db.write(lambda tx: set_limits(tx, limits))

    async def remove_limit(self, scope: LimitScope, name: str, kind: LimitKind) -> bool:
        """Take a limit away; whether there was one."""
        return await self._db.write(lambda tx: remove_limit(tx, scope, name, kind))

    async def limits(self) -> list[LimitState]:
        """All limits and how much of each is taken."""
        return await self._db.read(lambda tx: limit_states(tx, known_limits(tx)))

    async def define_breakers(
        self, breakers: Sequence[Breaker], *, known_types: Collection[str] = ()
    ) -> None:
        """Set up breakers; those that exist keep their position."""
        await self._db.write(lambda tx: define_breakers(tx, breakers, set(known_types)))

    async def reset_breaker(self, name: str) -> bool:
        """Close a breaker by hand."""
        return await self._db.write(lambda tx: reset_breaker(tx, name))

    async def breakers(self) -> list[BreakerState]:
        """All breakers."""
        return await self._db.read(known_breakers)
