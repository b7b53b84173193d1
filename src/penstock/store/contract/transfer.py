"""Moving a whole installation into another store, page by page."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from penstock.store.contract.tables import TableStore


class Part(StrEnum):
    """What an installation is made of, in the order it is moved."""

    JOBS = "jobs"
    EXECUTIONS = "executions"
    LOGS = "logs"
    DEAD_LETTERS = "dead letters"
    KEYS = "keys"
    DEPENDENCIES = "dependencies"
    LINES = "lines"
    SCHEDULES = "schedules"
    PAUSES = "pauses"
    LIMITS = "limits"
    RATES = "rates"
    BREAKERS = "breakers"
    METRICS = "metrics"
    RECORDS = "records"
    AUDIT = "audit"
    # After the jobs: what is moved in is not told as if it had just happened.
    FOLLOWERS = "followers"
    CHANGES = "changes"


Row = tuple[Any, ...]
"""One record: its columns in the order of `COLUMNS`, as JSON would have them.

Times are UTC milliseconds, documents are JSON text, lists of names are lists.
"""

# fmt: off
COLUMNS: Mapping[Part, tuple[str, ...]] = MappingProxyType(
    {
        Part.JOBS: (
            "id", "type", "queue", "category", "status", "priority", "rank", "payload", "result",
            "error", "error_details", "attempts", "max_retries", "snoozes", "rescues", "returns",
            "fence", "retry_delay_ms", "backoff_multiplier", "timeout_ms", "scheduled_at",
            "expires_at", "lease_owner", "lease_left_ms", "cancel_requested_at", "cancel_reason",
            "progress_percent", "progress_message", "progress", "checkpoint", "tenant_id",
            "workspace_id", "created_by", "parent_job_id", "schedule_id", "waiting_on", "key",
            "key_scope", "limit_key", "order_key", "tags", "metadata", "keep_completed",
            "keep_failed", "trace_context", "created_at", "updated_at", "queued_at", "started_at",
            "completed_at", "failed_at",
        ),
        Part.EXECUTIONS: (
            "job_id", "fence", "status", "started_at", "ended_at", "wait_ms", "duration_ms",
            "cpu_ms", "memory_kb", "worker", "error_class", "error_code", "error", "error_stack",
            "result",
        ),
        Part.LOGS: ("job_id", "fence", "at", "level", "message"),
        Part.DEAD_LETTERS: (
            "job_id", "type", "queue", "tenant_id", "reason", "error", "error_code",
            "fingerprint", "attempts", "rescues", "snapshot", "executions", "resolution", "notes",
            "resolved_by", "resolved_at", "created_at", "canary_of",
        ),
        Part.KEYS: ("tenant_id", "type", "key", "job_id", "scope", "expires_at"),
        Part.DEPENDENCIES: (
            "child_id", "parent_id", "kind", "argument", "position", "condition", "on_failure",
            "on_requeue", "outcome", "result", "created_at", "closed_at",
        ),
        Part.LINES: ("tenant_id", "order_key", "last_id"),
        Part.SCHEDULES: (
            "id", "name", "type", "kind", "tenant_id", "payload", "options", "expression",
            "interval_ms", "zone", "misfire", "enabled", "starts_at", "ends_at", "expires_at",
            "max_runs", "run_count", "last_run_at", "next_run_at", "by_operator", "created_by",
            "metadata", "created_at", "updated_at", "revision",
        ),
        Part.PAUSES: ("scope", "name", "reason", "paused_by", "created_at"),
        Part.LIMITS: (
            "scope", "name", "kind", "capacity", "interval_ms", "by_operator", "updated_at",
        ),
        Part.RATES: ("scope", "name", "starts"),
        Part.BREAKERS: (
            "name", "types", "failures", "cool_down_ms", "failed", "opened_at", "probe_id",
            "updated_at",
        ),
        Part.METRICS: ("resolution_ms", "bucket", "type", "queue", "name", "value"),
        Part.RECORDS: ("kind", "name", "document", "revision", "updated_at", "expires_at"),
        Part.AUDIT: (
            "seq", "at", "actor", "action", "subject", "tenant_id", "details", "previous", "hash",
        ),
        Part.FOLLOWERS: ("name", "statuses"),
        Part.CHANGES: (
            "follower", "job_id", "type", "queue", "tenant_id", "status", "fence", "at",
        ),
    }
)
# fmt: on


AT_ONCE = 200
"""Pages are read in pieces of so many records, until they are long or large enough."""

PAGE_BYTES = 8_000_000


def size_of(rows: Sequence[Row]) -> int:
    """About how many bytes records take."""
    return sum(len(value) for row in rows for value in row if isinstance(value, str))


class Page(Struct, frozen=True):
    """Some records, and where to go on; none when these were the last."""

    rows: list[Row]
    after: str | None


class Tally(Struct, frozen=True):
    """What an installation holds: records of each part, jobs of each status, sums to compare."""

    parts: dict[Part, int]
    statuses: dict[str, int]
    fences: int
    attempts: int


class Bookmark(Struct, frozen=True):
    """How far a move has got with a part; only who knows where it stands may move it on."""

    move: str
    before: str | None
    after: str


class Snapshot(Protocol):
    """An installation, or one moment of it, to be read out."""

    @property
    def tables(self) -> TableStore | None:
        """The tables of extensions at that moment; none where there are no tables."""
        ...

    async def tally(self) -> Tally:
        """Count everything."""
        ...

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        """Read about so many records, fewer where they are large.

        In the order they were made, or by their key where order means nothing.
        """
        ...

    async def marks(self) -> dict[str, str]:
        """Return what is written here about a move, see `model/moves.py`."""
        ...


class Transfer(Snapshot, Protocol):
    """Read one installation out, write it into another; slots, workers and leaders stay behind."""

    async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        """Write records as they are, fences and all, and the bookmark, in one transaction.

        False, and nothing is written, when the bookmark has moved on or the move is another one:
        the same page sent again changes nothing. `lease_left_ms` counts from now.
        """
        ...

    async def mark(self, changes: Mapping[str, str | None]) -> None:
        """Write some of them, and remove those that are None, in one transaction."""
        ...

    async def clear(self) -> None:
        """Delete everything, and the marks last; only for an installation that nobody uses."""
        ...
