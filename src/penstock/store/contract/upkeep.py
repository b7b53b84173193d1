"""The passes a leader runs. Each is one call that does a bounded amount and says what it did."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from penstock.model.states import Status
from penstock.store.contract.rollups import DAY_MS

KEPT_MS: Mapping[Status, int] = MappingProxyType(
    {
        Status.COMPLETED: 7 * DAY_MS,
        Status.CANCELLED: 7 * DAY_MS,
        Status.DEAD_LETTER: 90 * DAY_MS,
    }
)


class Fate(StrEnum):
    """What became of a job whose lease was taken away."""

    UNTOUCHED = "untouched"
    RESCUED = "rescued"
    CANCELLED = "cancelled"
    DEAD = "dead"


class Rescued(Struct, frozen=True):
    """One lease taken away."""

    id: str
    type: str
    owner: str
    fate: Fate


class Retention(Struct, frozen=True, kw_only=True):
    """How long ended jobs are kept per status, and how many per type at least.

    Dead letters that are resolved or ignored go with their jobs `keep_closed_ms` after they were.
    """

    keep_ms: Mapping[Status, int] = KEPT_MS
    keep_closed_ms: int = 30 * DAY_MS
    keep_last: Mapping[str, int] = {}


class Pruned(Struct, frozen=True):
    """What a prune pass deleted, and whether more waits."""

    jobs: int
    more: bool


class Upkeep(Protocol):
    """Leadership and the passes behind it."""

    async def lead(self, role: str, owner: str, term_ms: int) -> bool:
        """Take or keep the leadership for a term; false while someone else has it."""
        ...

    async def resign(self, role: str, owner: str) -> None:
        """Give the leadership up at once."""
        ...

    async def stage(self, limit: int = 1000) -> int:
        """Queue waiting jobs that fell due."""
        ...

    async def expire(self, limit: int = 1000) -> list[str]:
        """Dead-letter waiting jobs past their expiry."""
        ...

    async def rescue(
        self, *, owner: str | None = None, max_rescues: int = 3, limit: int = 1000
    ) -> list[Rescued]:
        """Take away leases that ran out, or all leases of an owner known to be dead."""
        ...

    async def release(self, limit: int = 1000) -> int:
        """Close edges whose parent has ended or is gone, and say how many it found.

        A backstop: the end of a job closes them itself.
        """
        ...

    async def prune(self, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention, with their history."""
        ...
