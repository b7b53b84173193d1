"""Something that was looked up, kept for a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

# Of a large installation a look takes long: a twentieth of the time is spent looking, but nobody
# is shown what is older than this for it.
TIMES_COST = 20
MOST_SECONDS = 15.0


class Fresh(Generic[T]):
    """One look for all who ask within a while, and never two at once."""

    def __init__(self, look: Callable[[], Awaitable[T]], seconds: float) -> None:
        self.look = look
        self._seconds = seconds
        self._kept: tuple[float, T] | None = None
        self._looking = asyncio.Lock()

    async def get(self) -> T:
        """What was seen a moment ago, or is seen now."""
        async with self._looking:
            began = monotonic()
            if self._kept is None or began >= self._kept[0]:
                seen = await self.look()
                costly = TIMES_COST * (monotonic() - began)
                self._kept = began + max(self._seconds, min(costly, MOST_SECONDS)), seen
            return self._kept[1]
