"""What holds work back: pauses, limits and circuit breakers."""

from collections.abc import Collection, Sequence
from typing import Protocol

from penstock.model.controls import (
    Breaker,
    BreakerState,
    Limit,
    LimitKind,
    LimitScope,
    LimitState,
    Pause,
    PauseScope,
)


class Controls(Protocol):
    """Changed while everything runs; the next claim obeys."""

    async def pause(
        self, scope: PauseScope, name: str, *, reason: str | None = None, by: str | None = None
    ) -> Pause:
        """Hold a queue, a type, a tenant or one waiting job; what runs already runs on.

        Pausing twice keeps the first pause. A job that has ended or runs refuses. What is said
        with it passes the redaction gate.
        """
        ...

    async def resume(self, scope: PauseScope, name: str) -> bool:
        """Let it go on, its jobs with their own times and order; whether it was paused."""
        ...

    async def pauses(self) -> list[Pause]:
        """Return everything that is paused, the oldest first."""
        ...

    async def set_limits(self, limits: Sequence[Limit]) -> None:
        """Set limits, all of them or none; what code declares leaves an operator's alone."""
        ...

    async def remove_limit(self, scope: LimitScope, name: str, kind: LimitKind) -> bool:
        """Take a limit away; whether there was one."""
        ...

    async def limits(self) -> list[LimitState]:
        """All limits, by scope and name, and how much of each is taken; of `*` nothing is."""
        ...

    async def define_breakers(
        self, breakers: Sequence[Breaker], *, known_types: Collection[str] = ()
    ) -> None:
        """Set up breakers; those that exist keep their position, and types of other applications.

        Types that the caller knows are guarded by these breakers and by no others; a breaker that
        is left without any type goes.
        """
        ...

    async def reset_breaker(self, name: str) -> bool:
        """Close a breaker by hand and forget its failures; whether there is one of this name."""
        ...

    async def breakers(self) -> list[BreakerState]:
        """All breakers, by name."""
        ...
