"""Pauses, limits and breakers on Redis."""

from collections.abc import Collection, Mapping, Sequence

from msgspec.json import encode

from penstock.model.controls import (
    Breaker,
    BreakerState,
    Limit,
    LimitKind,
    LimitScope,
    LimitState,
    Pause,
    PauseScope,
    check_limits,
)
from penstock.model.failure import MESSAGE_LIMIT, NAME_LIMIT
from penstock.model.redact import redacted
from penstock.store.redis.claim import look_at_gates, pause, paused, queue_depths
from penstock.store.redis.release import decided
from penstock.store.redis.scripts import Scripts


class RedisControls:
    """`Controls` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def pause(
        self, scope: PauseScope, name: str, *, reason: str | None = None, by: str | None = None
    ) -> Pause:
        """Hold a queue, a type, a tenant or one waiting job."""
        told = encode((redacted(reason, MESSAGE_LIMIT), redacted(by, NAME_LIMIT))).decode()
        return pause(scope, name, await decided(self._scripts, "pause", scope, name, told[1:]))

    async def resume(self, scope: PauseScope, name: str) -> bool:
        """Let it go on."""
        return bool(await decided(self._scripts, "resume", scope, name))

    async def pauses(self) -> list[Pause]:
        """Return everything that is paused, the oldest first."""
        keys = (f"{self._scripts.prefix}{name}" for name in ("pauses", "pauses:jobs"))
        lanes, jobs = await self._scripts.ask(*(("HGETALL", key) for key in keys))
        return paused(lanes, jobs)

    async def set_limits(self, limits: Sequence[Limit]) -> None:
        """Set limits, all of them or none."""
        check_limits(limits)
        rows = [
            (_field(limit.scope, limit.name, limit.kind), _is_depth(limit.kind), _terms(limit))
            for limit in limits
        ]
        await self._scripts.call("set_limits", *(part for row in rows for part in row))

    async def remove_limit(self, scope: LimitScope, name: str, kind: LimitKind) -> bool:
        """Take a limit away; whether there was one."""
        return bool(await self._scripts.call("remove_limit", _field(scope, name, kind)))

    async def limits(self) -> list[LimitState]:
        """All limits and how much of each is taken."""
        gates = await look_at_gates(self._scripts)
        depth_limits = [limit for limit in gates.limits if limit.kind is LimitKind.DEPTH]
        depths = await queue_depths(self._scripts, [limit.name for limit in depth_limits])
        return [gates.state(limit, _taken(limit, depths)) for limit in gates.limits]

    async def define_breakers(
        self, breakers: Sequence[Breaker], *, known_types: Collection[str] = ()
    ) -> None:
        """Set up breakers; those that exist keep their position."""
        rows = [
            (b.name, list(dict.fromkeys(b.types)), b.failures, b.cool_down_ms) for b in breakers
        ]
        await self._scripts.call("define_breakers", encode(rows), encode(sorted(known_types)))

    async def reset_breaker(self, name: str) -> bool:
        """Close a breaker by hand."""
        return bool(await self._scripts.call("reset_breaker", name))

    async def breakers(self) -> list[BreakerState]:
        """All breakers."""
        return (await look_at_gates(self._scripts)).breakers


def _taken(limit: Limit, depths: Mapping[str, int]) -> int:
    """How much stands in a queue, counted no further than one too many."""
    depth = depths[limit.name] if limit.kind is LimitKind.DEPTH else 0
    return min(limit.capacity + 1, depth)


def _field(scope: LimitScope, name: str, kind: LimitKind) -> str:
    return f"{scope}\n{kind}\n{name}"


def _is_depth(kind: LimitKind) -> int:
    return int(kind is LimitKind.DEPTH)


def _terms(limit: Limit) -> str:
    return encode((limit.capacity, limit.interval_ms, limit.by_operator)).decode()
