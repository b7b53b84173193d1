"""The passes a leader runs, and the register of workers they look at."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from penstock.model.states import Status
from penstock.store.contract.metrics import DAY_MS

SILENT_AFTER_MS = 30_000
FORGET_AFTER_MS = 3_600_000
COUNTED_TO = 1_000


class Beat(Struct, frozen=True, kw_only=True):
    """What a worker says of itself every few seconds."""

    owner: str
    name: str
    node: str
    pid: int
    queues: tuple[str, ...] | None
    types: tuple[str, ...]
    concurrency: int
    running: int
    completed: int
    failed: int
    cpu_percent: float
    memory_mb: float
    poll_age_ms: int
    max_priority: int | None = None
    state: str = "running"
    declared_queues: tuple[str, ...] = ()
    """The queues its types use, whether or not it serves them."""


class WorkerInfo(Beat, frozen=True, kw_only=True):
    """A worker as the store last heard of it."""

    started_at: int
    heartbeat_at: int
    heartbeat_age_ms: int

    @property
    def alive(self) -> bool:
        """Whether it was heard of within half a minute."""
        return self.heartbeat_age_ms < SILENT_AFTER_MS


class Workers(Protocol):
    """The register of workers."""

    def beat(self, beat: Beat) -> None:
        """Write or refresh a worker's row; safe to call from any thread."""
        ...

    async def forget(self, owner: str) -> None:
        """Remove a worker that stopped."""
        ...

    async def list(self) -> list[WorkerInfo]:
        """Return all known workers, the freshest first."""
        ...

    async def waiting_types(self) -> dict[str, int]:
        """Types with queued jobs, and how many, counted up to a thousand each."""
        ...

    async def running_types(self) -> dict[str, int]:
        """Types with jobs under a lease, and how many."""
        ...


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

    async def erase(self, ids: Sequence[str]) -> int:
        """Delete ended jobs and their dead letters at once, with all that hangs on them."""
        ...

    async def erase_keys(self, tenant_id: str) -> int:
        """Delete all unique keys of a tenant, those that outlived their jobs, too."""
        ...

    async def prune(self, retention: Retention, limit: int = 1000) -> Pruned:
        """Delete ended jobs past their retention, with their history."""
        ...

    async def prunable(self, retention: Retention, limit: int = 1000) -> list[str]:
        """The ids of jobs past the retention of their status, of each the first that ended."""
        ...

    async def prune_jobs(self, ids: Sequence[str], before: int) -> int:
        """Delete those of some jobs that ended before a time, with their history; how many."""
        ...
