"""Roll-ups kept while settling, so that no figure needs a scan of the jobs."""

from typing import Protocol

from msgspec import Struct


class QueueDepth(Struct, frozen=True, kw_only=True):
    """How much stands in one queue; `blocked` of the pending ones wait for other jobs."""

    queue: str
    pending: int = 0
    queued: int = 0
    in_progress: int = 0
    failed: int = 0
    oldest_queued_ms: int | None = None
    blocked: int = 0
    paused: int = 0

    @property
    def jobs(self) -> int:
        """All of them."""
        return self.pending + self.queued + self.in_progress + self.failed + self.paused


class Window(Struct, frozen=True, kw_only=True):
    """Figures over a span of time for one type and queue (empty names mean all of them).

    `failed` counts executions that are followed by another; `success_rate` is of jobs that ended:
    the completed ones among those and the dead.
    """

    type: str
    queue: str
    span_ms: int
    completed: int
    failed: int
    cancelled: int
    dead: int
    snoozed: int
    crashed: int
    lease_expiries: int
    success_rate: float | None
    per_minute: float
    duration_avg_ms: float | None
    duration_max_ms: float | None
    duration_p50_ms: float | None
    duration_p95_ms: float | None
    duration_p99_ms: float | None
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    wait_p99_ms: float | None

    @property
    def ended(self) -> int:
        """How many jobs ended by themselves, well or badly; cancelled ones are not counted."""
        return self.completed + self.dead


class Metrics(Protocol):
    """Figures for people and alerts."""

    async def depths(self, tenant_id: str | None = None) -> list[QueueDepth]:
        """Every queue that has waiting or running jobs, of a tenant or of all."""
        ...

    async def dead_count(self, type: str | None = None) -> int:  # noqa: A002 - the column's name
        """How many dead letters are open, of a type or of all."""
        ...

    async def window(self, span_ms: int, tenant_id: str | None = None) -> list[Window]:
        """One row per type and queue over the last span, and one in all, first.

        Of a tenant that has a name, or of all jobs.
        """
        ...

    async def series(
        self,
        resolution_ms: int,
        span_ms: int,
        *,
        timings: bool = False,
        tenant_id: str | None = None,
    ) -> list[tuple[int, dict[str, float]]]:
        """Counters per step of 10 s, 1 min, 1 h or 1 day, oldest first, of a tenant or of all.

        With `timings` also the steps of the histograms, as `duration:N` and `wait:N`.
        """
        ...

    async def totals(self) -> list[tuple[str, str, str, float]]:
        """Type, queue, name and value of every counter since the installation began.

        They only ever grow, whatever is pruned or dropped meanwhile. The names are those of the
        roll-ups, with the steps of the histograms as `duration:N` and `wait:N`.
        """
        ...

    async def roll_up(self) -> int:
        """Fold closed fine steps into coarse ones, sample depths, drop what is too old."""
        ...
