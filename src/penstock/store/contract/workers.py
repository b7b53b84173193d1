"""The workers that are, or recently were, alive."""

from typing import Protocol

from msgspec import Struct

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
        """All known workers, the freshest first."""
        ...

    async def waiting_types(self) -> dict[str, int]:
        """Types with queued jobs, and how many, counted up to a thousand each."""
        ...

    async def running_types(self) -> dict[str, int]:
        """Types with jobs under a lease, and how many."""
        ...
